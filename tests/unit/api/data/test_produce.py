"""Produce requests that wait, and their errors; the differential test covers the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.records.compression import Compression
from support.batches import batch
from support.images import broker, manually_assigned, new_topic
from support.loop import in_virtual_time, on_loop, turns
from support.nodes import RunningNode, frame_of, running_node

ALL, NONE = -1, 0


def produce_request(
    *topics: str, acks: int = ALL, timeout_ms: int = 1000, **options: object
) -> ProduceRequest:
    """Build a request with one record for partition 0 of each topic."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=0, records=bytes(batch(b"v", **options)))],
            )
            for topic in topics
        ],
    )


async def answers(node: RunningNode, request: ProduceRequest) -> list[PartitionProduceResponse]:
    response = await node.ask(request, 12)
    return [answer for topic in response.responses for answer in topic.partition_responses]


async def replicate(node: RunningNode, *topics: str) -> None:
    """Create topics with replicas on brokers 1 and 2, of which 2 has no records yet."""
    await node.broker.metadata.write(lambda image: decide_register(image.brokers, broker(2)))
    await node.create(*(manually_assigned(topic, [1, 2]) for topic in topics))


async def shrink(node: RunningNode, topic: str, state: PartitionRegistration) -> None:
    key = partition_key(node.topic_id(topic), 0)
    await node.broker.metadata.wait_for_revision(
        await node.store.commit({}, (PARTITION_STATES.put(key, state),))
    )


@in_virtual_time
async def test_acks_all_complete_when_the_last_in_sync_replica_has_the_records(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "t")
        asking = asyncio.create_task(answers(node, produce_request("t")))
        await turns()
        assert not asking.done()
        await shrink(node, "t", PartitionRegistration(1, 1, (1,)))
        [answer] = await asking
        assert (answer.error_code, answer.base_offset) == (0, 0)


@on_loop
async def test_a_request_waits_for_replicas_without_a_task(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "t", "u")
        tasks = asyncio.all_tasks()
        frame = memoryview(bytearray(frame_of(produce_request("t", "u"), 12)))
        _, response = node.dispatcher.start(frame, node.connection)
        assert isinstance(response, asyncio.Future)
        assert asyncio.all_tasks() == tasks
        for topic in ("t", "u"):
            await shrink(node, topic, PartitionRegistration(1, 1, (1,)))
        assert await response


@in_virtual_time
async def test_acks_of_one_do_not_wait_for_replicas(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "t")
        [answer] = await answers(node, produce_request("t", acks=1))
        assert answer.error_code == 0
        assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_slow_replicas_time_out_for_their_partition_only(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "slow")
        await node.create(manually_assigned("quick", [1]))
        slow, quick = await answers(node, produce_request("slow", "quick", timeout_ms=700))
        assert asyncio.get_running_loop().time() == pytest.approx(0.7)
        assert (slow.error_code, slow.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert slow.error_message == "The in-sync replicas did not acknowledge the records within 700 ms."
        assert (quick.error_code, quick.base_offset) == (0, 0)
        assert node.partition("slow").log.log_end_offset == 1


@in_virtual_time
async def test_waiting_producers_get_an_error_when_leadership_is_lost(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "t")
        asking = asyncio.create_task(answers(node, produce_request("t")))
        await turns()
        await shrink(node, "t", PartitionRegistration(2, 1, (2,)))
        [answer] = await asking
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@on_loop
async def test_with_flush_messages_the_response_waits_for_the_disk(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"flush.messages": "1"}))
        results = await asyncio.gather(*(answers(node, produce_request("t", acks=1)) for _ in range(20)))
        assert sorted(answer.base_offset for [answer] in results) == list(range(20))
        assert node.partition("t").log.recovery_point == 20
        assert node.broker.flusher.flushes_count < 20


@on_loop
async def test_a_disk_failure_during_the_flush_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"flush.messages": "1"}))
        with monkeypatch.context() as patched:
            patched.setattr(node.partition("t").log, "sync", fail)
            [answer] = await answers(node, produce_request("t"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "No space left on device" in (answer.error_message or "")
        assert answer.base_offset == -1


@pytest.mark.parametrize(("topic", "closes"), [("t", False), ("gone", True)])
def test_without_acks_there_is_no_response_and_an_error_closes_the_connection(
    tmp_path: Path, topic: str, closes: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            frame = memoryview(bytearray(frame_of(produce_request(topic, acks=NONE), 12)))
            context, request = node.dispatcher.parse(frame, node.connection)
            assert await node.dispatcher.respond(context, request) is None
            assert context.close_after is closes
            assert node.partition("t").log.log_end_offset == (not closes)

    scenario()


@on_loop
async def test_one_invalid_partition_does_not_fail_others(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"), new_topic("__consumer_offsets"))
        request = produce_request("gone", "t", "__consumer_offsets", acks=1)
        request.topic_data.append(TopicProduceData(name="t", partition_data=[PartitionProduceData(index=9)]))
        found = await answers(node, request)
        assert [answer.error_code for answer in found] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert all(answer.error_message for answer in found if answer.error_code)


@on_loop
async def test_a_damaged_batch_is_rejected_as_a_whole(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        request = produce_request("t")
        data = request.topic_data[0].partition_data[0]
        data.records = bytes(data.records or b"")[:-1] + b"?"
        [answer] = await answers(node, request)
        assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
        assert node.partition("t").log.log_end_offset == 0


@on_loop
async def test_records_without_keys_are_reported_individually_in_compacted_topics(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"cleanup.policy": "compact"}))
        request = produce_request("t")
        request.topic_data[0].partition_data[0].records = bytes(batch(b"1", b"2"))
        [answer] = await answers(node, request)
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [0, 1]
        assert all(error.batch_index_error_message for error in answer.record_errors)


@on_loop
async def test_log_append_time_is_returned(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(
            new_topic("theirs"), new_topic("ours", configs={"message.timestamp.type": "LogAppendTime"})
        )
        theirs, ours = await answers(node, produce_request("theirs", "ours", timestamp_ms=5))
        assert (theirs.log_append_time_ms, ours.log_append_time_ms) == (-1, node.clock.now_ms)


def hold_validation(node: RunningNode) -> asyncio.Event:
    """Let batches that take long to validate wait for an event."""
    validate, may_end = node.broker.record_worker.call, asyncio.Event()

    async def call_slowly(*arguments: Any) -> Any:
        validated = await validate(*arguments)
        await may_end.wait()
        return validated

    node.broker.record_worker.call = call_slowly  # type: ignore[method-assign]
    return may_end


@on_loop
async def test_a_batch_that_is_slow_to_validate_does_not_block_the_loop(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"), new_topic("u"))
        values = [b"v" * 1000] * 2000
        costly = produce_request("t", "u")
        costly.topic_data[0].partition_data[0].records = bytes(batch(*values, compression=Compression.ZSTD))
        may_end = hold_validation(node)
        asking = asyncio.create_task(answers(node, costly))
        await turns()
        assert not asking.done()
        may_end.set()
        first, second = await asking
        assert (first.error_code, first.base_offset) == (0, 0)
        assert (second.error_code, second.base_offset) == (0, 0)
        assert node.partition("t").log.log_end_offset == len(values)


@on_loop
async def test_records_are_rejected_if_the_leader_changes_during_validation(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await replicate(node, "t")
        costly = produce_request("t", acks=1)
        costly.topic_data[0].partition_data[0].records = bytes(
            batch(*[bytes(1000)] * 2000, compression=Compression.ZSTD)
        )
        closed = hold_validation(node)
        asking = asyncio.create_task(answers(node, costly))
        await turns()
        node.partition("t").close()
        closed.set()
        [answer] = await asking
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert node.partition("t").log.log_end_offset == 0
