from pathlib import Path

import pytest

from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.replication.fetch_reader import Reads, error_partition, read_all
from barnabas.replication.fetch_targets import FetchTarget, Key
from barnabas.wire.errors import ErrorCode
from support.batches import batch, values_of
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

UNLIMITED = 2**31 - 1


def target(
    topic: str | bytes,
    index: int = 0,
    offset: int = 0,
    max_bytes: int = UNLIMITED,
    epoch: int = -1,
    last: int = -1,
) -> tuple[Key, FetchTarget]:
    """Build one partition to read, by name or by id."""
    by_id = isinstance(topic, bytes)
    name, topic_id = ("", topic) if isinstance(topic, bytes) else (topic, bytes(16))
    return (topic, index), FetchTarget(name, topic_id, index, offset, max_bytes, epoch, last, by_id=by_id)


def read(
    node: RunningNode, *targets: tuple[Key, FetchTarget], max_bytes: int = UNLIMITED, committed: bool = False
) -> Reads:
    return read_all(node.broker.replicas, targets, max_bytes, read_committed=committed)


def produce(node: RunningNode, topic: str, *values: bytes, index: int = 0) -> int:
    """Append a batch for each value; return the bytes of the last batch."""
    size_bytes = 0
    for value in values:
        size_bytes = node.partition(topic, index).append_as_leader(batch(value), 1).size_bytes
    return size_bytes


@on_loop
async def test_each_partition_returns_its_records_and_offsets(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"))
        size_bytes = produce(node, "a", b"1", b"2")
        produce(node, "b", b"3")
        node.partition("a").delete_records(1)
        reads = read(node, target("a", offset=1), target(node.topic_id("b")))
        (_, _, a), (_, _, b) = reads.results
        assert (values_of(a.records), a.high_watermark, a.log_start_offset) == ([b"2"], 2, 1)
        assert (values_of(b.records), b.last_stable_offset, b.log_start_offset) == ([b"3"], 1, 0)
        assert reads.size_bytes == 2 * size_bytes
        assert not reads.must_respond


@pytest.mark.parametrize(("committed", "expected"), [(False, None), (True, [])])
def test_aborted_transactions_are_listed_for_read_committed(
    tmp_path: Path, committed: bool, expected: list[object] | None
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("a"))
            [(_, _, data)] = read(node, target("a"), committed=committed).results
            assert data.aborted_transactions == expected

    scenario()


@on_loop
async def test_the_end_of_a_log_is_empty_without_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        produce(node, "a", b"1")
        reads = read(node, target("a", offset=1))
        [(_, _, data)] = reads.results
        assert (data.error_code, bytes(data.records or b""), reads.size_bytes) == (0, b"", 0)
        assert not reads.must_respond


@on_loop
async def test_the_first_batch_is_complete_and_then_the_limit_applies(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"), new_topic("empty"))
        for topic in "ab":
            produce(node, topic, b"x" * 1000)
        reads = read(node, target("empty"), target("a"), target("b"), max_bytes=1)
        sizes = [len(data.records or b"") for _, _, data in reads.results]
        assert sizes[0] == sizes[2] == 0
        assert sizes[1] == reads.size_bytes > 1000


@on_loop
async def test_a_partitions_own_limit_applies_except_for_the_first_batch(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"))
        size_bytes = produce(node, "a", *[b"x" * 100] * 3)
        produce(node, "b", *[b"x" * 100] * 3)
        reads = read(node, target("a", max_bytes=1), target("b", max_bytes=2 * size_bytes + 5))
        assert [len(data.records or b"") for _, _, data in reads.results] == [size_bytes, 2 * size_bytes + 5]


@on_loop
async def test_each_partition_may_use_the_rest_of_the_limit(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"))
        size_bytes = produce(node, "a", b"x" * 100)
        for _ in range(2):
            produce(node, "b", b"x" * 100)
        reads = read(node, target("a"), target("b"), max_bytes=2 * size_bytes + 10)
        assert [len(data.records or b"") for _, _, data in reads.results] == [size_bytes, size_bytes + 10]


@on_loop
async def test_a_batch_that_exceeds_the_rest_of_the_limit_is_not_returned(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"))
        size_bytes = produce(node, "a", b"x" * 100)
        produce(node, "b", b"x" * 100)
        reads = read(node, target("a"), target("b"), max_bytes=size_bytes + 10, committed=True)
        found = [(len(data.records or b""), data.aborted_transactions) for _, _, data in reads.results]
        assert found == [(size_bytes, []), (0, None)]


@on_loop
async def test_a_partition_error_does_not_fail_others_and_is_returned_immediately(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        produce(node, "a", b"1")
        asked = [
            (target("gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (target("a", index=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (target(b"?" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
            (target(bytes(16)), ErrorCode.UNKNOWN_TOPIC_ID),
            (target("a", offset=2), ErrorCode.OFFSET_OUT_OF_RANGE),
            (target("a", offset=-1), ErrorCode.OFFSET_OUT_OF_RANGE),
            (target("a", epoch=1), ErrorCode.UNKNOWN_LEADER_EPOCH),
            (target("a"), ErrorCode.NONE),
        ]
        reads = read(node, *(each for each, _ in asked))
        assert [data.error_code for _, _, data in reads.results] == [code for _, code in asked]
        assert values_of(reads.results[-1][2].records) == [b"1"]
        for _, _, data in reads.results[:-1]:
            assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)
        assert (reads.must_respond, reads.unknown_count) == (True, 4)
        reads = read(node, *(each for each, _ in asked[:4]))
        assert not reads.must_respond


@on_loop
async def test_a_partition_led_elsewhere_is_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        await lead(node, "a", 2, 1)
        [(_, _, data)] = read(node, target("a")).results
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def lead(node: RunningNode, topic: str, leader: int, epoch: int) -> None:
    """Set the leader of partition 0."""
    key = partition_key(node.topic_id(topic), 0)
    change = PARTITION_STATES.put(key, PartitionRegistration(leader, epoch, (leader,)))
    await node.broker.metadata.wait_for_revision(await node.store.commit({}, (change,)))


@pytest.mark.parametrize(
    ("last", "offset", "diverging"),
    [
        (0, 2, None),
        (0, 3, (0, 2)),
        (3, 4, None),
        (3, 5, (3, 4)),
        (1, 2, (0, 2)),
        (2, 3, (0, 2)),
    ],
)
def test_a_diverging_epoch_is_returned_to_a_reader_with_another_history(
    tmp_path: Path, last: int, offset: int, diverging: tuple[int, int] | None
) -> None:
    """Epoch 0 wrote offsets 0 and 1, epoch 3 wrote 2 and 3 (KIP-595)."""

    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("a"))
            produce(node, "a", b"0", b"1")
            await lead(node, "a", 1, 3)
            produce(node, "a", b"2", b"3")
            reads = read(node, target("a", offset=offset, last=last))
            [(_, _, data)] = reads.results
            assert data.error_code == 0
            assert data.diverging_epoch == diverging
            assert reads.must_respond is (diverging is not None)
            assert reads.size_bytes == 0 or diverging is None

    scenario()


@on_loop
async def test_an_epoch_before_all_known_ones_is_out_of_range(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        await lead(node, "a", 1, 3)
        produce(node, "a", b"0")
        node.partition("a").log.epochs.truncate_from_end(0)
        [(_, _, data)] = read(node, target("a", last=0)).results
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_error_has_no_other_fields() -> None:
    data = error_partition(3, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (data.partition_index, data.error_code) == (3, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert {data.high_watermark, data.last_stable_offset, data.log_start_offset} == {-1}
    assert data.records == b""
