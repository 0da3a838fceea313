"""DeleteRecords, OffsetForLeaderEpoch and DescribeProducers: one result for each partition."""

from pathlib import Path

from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.batches import NOW_MS, batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def lead(node: RunningNode, epoch: int) -> None:
    """Make broker 1 the leader of t-0 in a new epoch."""
    key = partition_key(node.topic_id("t"), 0)
    change = PARTITION_STATES.put(key, PartitionRegistration(1, epoch, (1,)))
    await node.broker.metadata.wait_for_revision(await node.store.commit({}, (change,)))


@on_loop
async def test_records_are_deleted_up_to_an_offset_or_to_the_end(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        compacted = new_topic("compacted", configs={"cleanup.policy": "compact"})
        await node.create(new_topic("t", 3), compacted, new_topic("__consumer_offsets"))
        for index in range(3):
            node.partition("t", index).append_as_leader(batch(b"1", b"2"), 1)

        def wanted(name: str, *offsets: int) -> DeleteRecordsTopic:
            partitions = [
                DeleteRecordsPartition(partition_index=index, offset=offset)
                for index, offset in enumerate(offsets)
            ]
            return DeleteRecordsTopic(name=name, partitions=partitions)

        names = ("gone", "compacted", "__consumer_offsets")
        topics = [wanted("t", 1, -1, 3), *(wanted(name, 0) for name in names)]
        answer = await node.ask(DeleteRecordsRequest(topics=topics))
        found = {
            (topic.name, each.partition_index): (each.low_watermark, ErrorCode(each.error_code).name)
            for topic in answer.topics
            for each in topic.partitions
        }
        assert found == {
            ("t", 0): (1, "NONE"),
            ("t", 1): (2, "NONE"),
            ("t", 2): (-1, "OFFSET_OUT_OF_RANGE"),
            ("gone", 0): (-1, "UNKNOWN_TOPIC_OR_PARTITION"),
            ("compacted", 0): (-1, "POLICY_VIOLATION"),
            ("__consumer_offsets", 0): (-1, "INVALID_TOPIC_EXCEPTION"),
        }


@on_loop
async def test_an_epoch_ends_where_the_next_one_starts(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        node.partition("t").append_as_leader(batch(b"1", b"2"), 1)
        await lead(node, 4)
        node.partition("t").append_as_leader(batch(b"3"), 1)

        async def ask(topic: str, epoch: int, current: int = -1) -> tuple[int, int, int]:
            asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
            topics = [OffsetForLeaderTopic(topic=topic, partitions=[asked])]
            answer = await node.ask(OffsetForLeaderEpochRequest(topics=topics))
            found = answer.topics[0].partitions[0]
            return found.error_code, found.leader_epoch, found.end_offset

        assert await ask("t", 0) == (0, 0, 2)
        assert await ask("t", 2) == (0, 0, 2)
        assert await ask("t", 4, current=4) == (0, 4, 3)
        assert await ask("t", 9) == (0, -1, -1)
        assert await ask("t", 0, current=3) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
        assert await ask("gone", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        node.partition("t").log.take_offline(OSError("the disk failed"))
        assert await ask("t", 0) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)


@on_loop
async def test_producers_are_described_from_the_partitions_state(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        produced = batch(b"1", b"2", producer_id=5, producer_epoch=3, base_sequence=0)
        node.partition("t").append_as_leader(produced, 1)
        topics = [TopicRequest(name="t", partition_indexes=[0, 7])]
        answer = await node.ask(DescribeProducersRequest(topics=topics))
        known, unknown = answer.topics[0].partitions
        [producer] = known.active_producers
        assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5, 3, 1)
        assert (producer.last_timestamp, producer.current_txn_start_offset) == (NOW_MS, -1)
        assert (unknown.error_code, unknown.active_producers) == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            [],
        )
        assert unknown.error_message


@on_loop
async def test_producers_of_a_partition_that_is_named_again_are_described_once(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2), new_topic("u"))
        indexes = {"t": [0, 0, 1, 0], "u": [0]}
        topics = [TopicRequest(name, each) for name, each in [*indexes.items(), ("t", [1, 7])]]
        answer = await node.ask(DescribeProducersRequest(topics=topics))
        described = [
            (topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics
        ]
        assert described == [("t", [0, 1]), ("u", [0]), ("t", [7])]
