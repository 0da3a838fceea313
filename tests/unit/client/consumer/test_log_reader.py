"""Reading a partition with its control batches."""

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.log_reader import read_log
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.records.control import EndTransactionMarker, encode_end_marker
from barnabas.wire.records.record import Record, encode_batch
from support.loop import on_loop
from unit.client.fake_broker import FakeBroker

TP = TopicPartition("t", 0)


def batch(value: bytes) -> bytearray:
    return encode_batch([Record(0, 0, None, value)], producer_id=7, transactional=True)


async def read(broker: FakeBroker) -> bytes:
    async with ClusterClient(broker.bootstrap) as cluster:
        return b"".join([bytes(batches) async for batches in read_log(cluster, TP)])


@on_loop
async def test_all_batches_are_returned_including_control_batches() -> None:
    async with FakeBroker() as broker:
        topic = broker.create("t")
        broker.append("t", 0, batch(b"a"))
        broker.append("t", 0, encode_end_marker(EndTransactionMarker(7, 0, 0, commit=False, timestamp_ms=0)))
        assert await read(broker) == bytes(topic.logs[0])


@on_loop
async def test_an_empty_partition_has_no_batches() -> None:
    async with FakeBroker() as broker:
        broker.create("t")
        assert await read(broker) == b""
        assert not broker.received(FetchRequest)


@on_loop
async def test_a_leader_that_briefly_has_fewer_records_is_requested_again() -> None:
    async with FakeBroker() as broker:
        topic = broker.create("t")
        broker.append("t", 0, batch(b"a"))
        empty = PartitionData(partition_index=0, high_watermark=0, records=b"")
        gone = PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)

        def answer(data: PartitionData) -> FetchResponse:
            found = FetchableTopicResponse(topic="t", topic_id=topic.topic_id, partitions=[data])
            return FetchResponse(responses=[found])

        broker.answer(FetchRequest, lambda _: answer(empty), lambda _: answer(gone))
        assert await read(broker) == bytes(topic.logs[0])
        assert len(broker.received(FetchRequest)) == 3
