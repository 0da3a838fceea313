"""Encoded batches are stored once and in order, for any sequence of broker responses."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.batch_sender import BatchSender, split_batch
from barnabas.client.producer.transaction_requests import idempotent_identity
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_all, encode_batch
from support.loop import on_loop

NO_IDENTITY = ProducerIdAndEpoch(-1, -1)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.replace("[", "-").replace("]", "")
    broker.create_topic(name, 3)
    yield name
    broker.clear_faults()


@asynccontextmanager
async def running_sender(
    broker: EmbeddedBroker, **options: Any
) -> AsyncIterator[tuple[BatchSender, ProducerIdAndEpoch]]:
    async with ClusterClient(broker.bootstrap) as cluster, BatchSender(cluster, **options) as sender:
        yield sender, await idempotent_identity(cluster)


def batch(first: int, count: int, identity: ProducerIdAndEpoch = NO_IDENTITY, size: int = 1) -> bytearray:
    """Encode records whose values equal their sequences."""
    return encode_batch(
        [Record(0, 1_000, None, f"{number}".rjust(size).encode()) for number in range(first, first + count)],
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=first if identity is not NO_IDENTITY else -1,
    )


def numbers(broker: EmbeddedBroker, topic: str, partition: int = 0) -> list[int]:
    return [int(each.value or b"") for each in broker.records(topic) if each.partition == partition]


def test_batches_of_a_partition_keep_their_order(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker) as (sender, identity):
            batches = [batch(first, 10, identity) for first in range(0, 500, 10)]
            await sender.put((TopicPartition(topic, index), each) for each in batches for index in range(3))
            await sender.flush()

    scenario()
    assert all(numbers(broker, topic, index) == list(range(500)) for index in range(3))


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_a_batch_is_retried_after_a_retriable_error(
    broker: EmbeddedBroker, topic: str, code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker) as (sender, identity):
            broker.fail_next("Produce", code, 2, topic=topic)
            await sender.put((TopicPartition(topic, 0), batch(first, 10, identity)) for first in (0, 10, 20))
            await sender.flush()

    scenario()
    assert numbers(broker, topic) == list(range(30))


def test_a_batch_whose_response_was_lost_is_stored_once(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker) as (sender, identity):
            broker.drop_next("Produce", 1, topic=topic, handled=True)
            await sender.put((TopicPartition(topic, 0), batch(first, 10, identity)) for first in (0, 10, 20))
            await sender.flush()

    scenario()
    assert numbers(broker, topic) == list(range(30))


def test_a_fatal_error_fails_all_later_batches(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker) as (sender, identity):
            broker.fail_next("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1, topic=topic)
            await sender.put([(TopicPartition(topic, 0), batch(0, 10, identity))])
            for _ in range(2):
                with pytest.raises(KafkaError) as caught:
                    await sender.flush()
                assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            with pytest.raises(KafkaError):
                await sender.put([(TopicPartition(topic, 0), batch(10, 10, identity))])

    scenario()


def test_a_batch_fails_at_the_delivery_timeout(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker, delivery_timeout_ms=200) as (sender, identity):
            broker.fail_next("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, 1_000, topic=topic)
            await sender.put([(TopicPartition(topic, 0), batch(0, 10, identity))])
            with pytest.raises(KafkaError) as caught:
                await sender.flush()
            assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS

    scenario()


def test_a_batch_that_is_too_large_is_split_until_it_fits(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(f"{topic}-small", 1, {"max.message.bytes": "300"})

    @on_loop
    async def scenario() -> None:
        async with running_sender(broker) as (sender, identity):
            tp = TopicPartition(f"{topic}-small", 0)
            await sender.put([(tp, batch(0, 100, identity, 20)), (tp, batch(100, 100, identity, 20))])
            await sender.flush()
            await sender.put([(tp, batch(200, 1, identity, 500))])
            with pytest.raises(KafkaError, match=r"a record of \d+ bytes is larger than max\.message\.bytes"):
                await sender.flush()

    scenario()
    assert numbers(broker, f"{topic}-small") == list(range(200))


def test_append_waits_for_buffer_memory(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker, buffer_size_bytes=1) as (sender, identity):
            tp = TopicPartition(topic, 0)
            await sender.put((tp, batch(first, 10, identity)) for first in range(0, 100, 10))
            await sender.flush()

    scenario()
    assert numbers(broker, topic) == list(range(100))


def test_without_acknowledgements_sends_do_not_wait(broker: EmbeddedBroker, topic: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_sender(broker, acks=0) as (sender, _):
            await sender.put([(TopicPartition(topic, 0), batch(0, 10))])
            await sender.flush()
            await sender.cluster.refresh([])

    scenario()


def test_a_split_batch_keeps_its_sequences() -> None:
    whole = encode_batch(
        [Record(0, number, b"k", b"v", (("h", None),)) for number in range(5)],
        compression=Compression.ZSTD,
        producer_id=7,
        producer_epoch=2,
        base_sequence=(1 << 31) - 1,
        transactional=True,
    )
    halves = split_batch(whole)
    headers = [header for half in halves for _, header in iterate_headers(half)]
    assert [header.base_sequence for header in headers] == [(1 << 31) - 1, 1]
    assert {(header.producer_id, header.producer_epoch, header.is_transactional) for header in headers} == {
        (7, 2, True)
    }
    assert {header.compression for header in headers} == {Compression.ZSTD}
    assert [record.timestamp_ms for half in halves for record in decode_all(half)] == list(range(5))
