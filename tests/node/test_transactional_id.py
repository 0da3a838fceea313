"""A transaction in parts: begun, filled and ended by calls that share only the producer id and epoch."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offsets import LATEST, find_offsets
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.batch_sender import BatchSender
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.record import Record, encode_batch
from support.loop import on_loop

TIMEOUT_MS = 60_000
TOPIC = "out"
PARTITIONS = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(SETTINGS) as running:
        running.create_topic(TOPIC, 2)
        yield running


@asynccontextmanager
async def cluster(broker: EmbeddedBroker) -> AsyncIterator[ClusterClient]:
    async with ClusterClient(broker.bootstrap) as connected:
        yield connected


async def produce(cluster: ClusterClient, name: str, identity: ProducerIdAndEpoch, *values: bytes) -> None:
    """Write a value to each partition in turn."""
    await TransactionalId(cluster, name).add_partitions(identity, PARTITIONS[: len(values)])
    async with BatchSender(cluster, transactional_id=name) as sender:
        for tp, value in zip(PARTITIONS, values, strict=False):
            batch = encode_batch(
                [Record(0, 1_000, None, value)],
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=0,
                transactional=True,
            )
            await sender.put([(tp, batch)])
        await sender.flush()


def test_any_client_with_the_producer_id_and_epoch_can_end_the_transaction_idempotently(
    broker: EmbeddedBroker,
) -> None:
    @on_loop
    async def scenario() -> None:
        async with cluster(broker) as beginning:
            identity = await TransactionalId(beginning, "twice").initialize(TIMEOUT_MS)
            await produce(beginning, "twice", identity, b"a", b"b")
            committed = OffsetAndMetadata(5, -1, "about it")
            await TransactionalId(beginning, "twice").commit_offsets(
                identity, "twice", {PARTITIONS[0]: committed}
            )
            assert await Groups(beginning).offsets("twice") == {}
        async with cluster(broker) as ending:
            for _ in range(2):
                await TransactionalId(ending, "twice").end(identity, commit=True)
            assert await Groups(ending).offsets("twice") == {PARTITIONS[0]: committed}

    scenario()


def test_a_new_epoch_aborts_the_open_transaction(broker: EmbeddedBroker) -> None:
    @on_loop
    async def scenario() -> None:
        async with cluster(broker) as connected:
            name = TransactionalId(connected, "fenced")
            first = await name.initialize(TIMEOUT_MS)
            await produce(connected, "fenced", first, b"lost")
            second = await name.initialize(TIMEOUT_MS)
            assert second != first
            ends = await find_offsets(connected, {PARTITIONS[0]: LATEST}, Isolation.READ_COMMITTED)
            assert ends == await find_offsets(connected, {PARTITIONS[0]: LATEST})
            with pytest.raises(KafkaError, match="'fenced': not committed") as caught:
                await name.end(first, commit=True)
            assert caught.value.code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
            with pytest.raises(KafkaError):
                await produce(connected, "fenced", first, b"zombie")

    scenario()


def test_an_aborted_transaction_cannot_be_committed(broker: EmbeddedBroker) -> None:
    @on_loop
    async def scenario() -> None:
        async with cluster(broker) as connected:
            name = TransactionalId(connected, "aborted")
            identity = await name.initialize(TIMEOUT_MS)
            await produce(connected, "aborted", identity, b"lost")
            for _ in range(2):
                await name.end(identity, commit=False)
            with pytest.raises(KafkaError) as caught:
                await name.end(identity, commit=True)
            assert caught.value.code is ErrorCode.INVALID_TXN_STATE

    scenario()


def test_a_transaction_timeout_above_the_maximum_is_reported(broker: EmbeddedBroker) -> None:
    @on_loop
    async def scenario() -> None:
        async with cluster(broker) as connected:
            with pytest.raises(KafkaError, match=r"no producer id \(timeout 900001 ms\)") as caught:
                await TransactionalId(connected, "slow").initialize(900_001)
            assert caught.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT

    scenario()
