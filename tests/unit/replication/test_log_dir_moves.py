"""Moves between the log directories of a node, step by step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.log_directory import LogDirectory, has_move_mark
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.replication import log_dir_moves
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.log_dir_move import MoveState, ReplicaMove
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, iterate_headers
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop, turns
from support.memory_store import MemoryStore
from support.nodes import RunningNode, running_node

T0 = TopicPartition("t", 0)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make short logs take many steps, and waiters poll soon."""
    monkeypatch.setattr(log_dir_moves, "STEP_BYTES_MAX", 300)
    monkeypatch.setattr(log_dir_moves, "LAST_STEP_BYTES", 150)
    monkeypatch.setattr(log_dir_moves, "LAST_STEP_BYTES_MAX", 600)
    monkeypatch.setattr("barnabas.base.throttle.WAIT_MS_MAX", 2)


@asynccontextmanager
async def node_with(
    root: Path, store: MemoryStore | None = None, *, held: bool = False, **configs: str
) -> AsyncIterator[RunningNode]:
    """Run a node with t-0 in directory a with 20 records; with `held` a move makes one step and stops."""
    dirs = ",".join(str(root / name) for name in "abc")
    rate = {"replica_alter_log_dirs_io_max_bytes_per_second": "1"} if held else {}
    async with running_node(root / "a", store, log_dirs=dirs, **rate) as node:
        if "t" not in node.broker.image.topics:
            given = {key.replace("_", "."): value for key, value in configs.items()}
            await node.create(new_topic("t", configs=given))
            append(node, *range(20))
        yield node


def append(node: RunningNode, *values: int) -> None:
    for value in values:
        node.partition("t").append_as_leader(batch(b"%d" % value), -1)


def bytes_of(partition: Partition, offset: int | None = None) -> bytes:
    """Return every byte that a consumer can read."""
    log, data = partition.log, b""
    offset = log.log_start_offset if offset is None else offset
    while offset < log.log_end_offset:
        found = bytes(log.read(offset, 1 << 20, log.log_end_offset, min_one_batch=True).data)
        *_, (_, last) = iterate_headers(found)
        data, offset = data + found, last.next_offset
    return data


def directory(node: RunningNode, name: str) -> LogDirectory:
    return next(each for each in node.log_manager.directories if each.path.name == name)


def start(node: RunningNode, to: str) -> ReplicaMove:
    """Request the move of t-0 to another directory."""
    node.broker.log_dir_moves.alter(node.partition("t"), directory(node, to))
    return node.broker.log_dir_moves._moves[T0]


async def one_step(node: RunningNode, move: ReplicaMove) -> None:
    """Wait for the next step of a held move."""
    copied_bytes = move.copied_bytes
    node.clock.advance(10_000_000)
    while move.copied_bytes == copied_bytes:
        await asyncio.sleep(0.001)
    await turns(20)


async def ended(node: RunningNode) -> None:
    """Wait until no move is in progress, and release held moves."""
    while tasks := list(node.broker.log_dir_moves._tasks.values()):
        node.clock.advance(10_000_000)
        await asyncio.wait(tasks, timeout=0.002)


def found_in(root: Path) -> dict[str, list[str]]:
    """Return log directory -> directories of t-0."""
    kinds = {"delete": "deleted", "future": "future", "stray": "stray"}
    found: dict[str, list[str]] = {}
    for path in sorted(root.glob("*/t-0*")):
        kind = kinds.get(path.name.rpartition("-")[2], "log")
        found.setdefault(path.parent.name, []).append(kind)
    return found


def kill(node: RunningNode) -> None:
    """End the node like a killed process: nothing is flushed or marked."""
    for each in node.log_manager.directories:
        each.failure = "killed"


# Copying the log


@on_loop
async def test_records_appended_meanwhile_are_copied(tmp_path: Path) -> None:
    async with node_with(tmp_path, file_delete_delay_ms="0") as node:
        move = start(node, "b")
        number = 20
        while move.state is MoveState.COPYING:
            append(node, number)
            number += 1
            await asyncio.sleep(0.002)
        before = bytes_of(node.partition("t"))
        append(node, number)
        await ended(node)
        log = node.partition("t").log
        assert log.directory == tmp_path / "b" / "t-0"
        assert log.high_watermark == log.log_end_offset == number + 1
        assert bytes_of(node.partition("t")).startswith(before)
        assert move.state is MoveState.DONE
        node.log_manager.deletions.remove_due(node.clock.monotonic_ms())
        assert found_in(tmp_path) == {"b": ["log"]}
        assert not has_move_mark(log.directory)


@pytest.mark.parametrize("killed", [True, False])
@on_loop
async def test_the_moved_log_is_unchanged_after_a_restart(tmp_path: Path, killed: bool) -> None:
    store = MemoryStore()
    async with node_with(tmp_path, store, internal_segment_bytes="400") as node:
        append(node, *range(20, 30))
        node.partition("t").delete_records(7)
        start(node, "b")
        await ended(node)
        before = bytes_of(node.partition("t"))
        if killed:
            kill(node)
    async with node_with(tmp_path, store) as node:
        assert node.partition("t").log.directory.parent.name == "b"
        assert node.partition("t").log.log_start_offset == 7
        assert bytes_of(node.partition("t")) == before
        append(node, 30)


@on_loop
async def test_producers_and_epochs_are_copied(tmp_path: Path) -> None:
    async with node_with(tmp_path, internal_segment_bytes="400") as node:
        partition = node.partition("t")
        sent = [batch(b"x", producer_id=5, producer_epoch=1, base_sequence=number) for number in range(7)]
        offsets = [partition.append_as_leader(each, -1).first_offset for each in sent]
        partition.leader_epoch = 3
        append(node, 100)
        source = partition.log
        producers, epochs = source.producers.states.active, source.epochs.entries
        start(node, "b")
        await ended(node)
        assert partition.log is not source
        assert partition.log.producers.states.active == producers
        assert partition.log.epochs.entries == epochs
        again = partition.append_as_leader(batch(b"x", producer_id=5, producer_epoch=1, base_sequence=6), -1)
        assert (again.duplicate, again.first_offset) == (True, offsets[-1])
        with pytest.raises(KafkaError) as error:
            partition.append_as_leader(batch(b"x", producer_id=5, producer_epoch=1, base_sequence=9), -1)
        assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("killed", [True, False])
@on_loop
async def test_a_producer_without_batches_is_known_after_a_move_and_a_restart(
    tmp_path: Path, killed: bool
) -> None:
    store = MemoryStore()
    async with node_with(tmp_path, store, internal_segment_bytes="400", retention_ms="-1") as node:
        partition = node.partition("t")
        partition.append_as_leader(batch(b"x", producer_id=5, producer_epoch=1, base_sequence=0), -1)
        append(node, *range(100, 110))
        partition.delete_records(-1)
        partition.log.delete_old_segments(node.clock.wall_ms())
        append(node, 110)
        start(node, "b")
        await ended(node)
        if killed:
            kill(node)
    async with node_with(tmp_path, store) as node:
        again = batch(b"x", producer_id=5, producer_epoch=1, base_sequence=0)
        assert node.partition("t").append_as_leader(again, -1).duplicate


@on_loop
async def test_fetched_data_stays_valid_and_delayed_fetches_complete(tmp_path: Path) -> None:
    async with node_with(tmp_path) as node:
        partition = node.partition("t")
        view = partition.log.read(0, 1 << 20, 20, may_copy=False).data
        before = bytes(view)
        waiting = DelayedFetch(1)
        waited = asyncio.create_task(waiting.wait([partition], 60_000))
        await turns()
        start(node, "b")
        await ended(node)
        assert not waited.done()
        append(node, 20)
        await waited
        assert bytes(view) == before


@on_loop
async def test_waiters_for_a_flush_get_no_error(tmp_path: Path) -> None:
    async with node_with(tmp_path, flush_messages="1") as node:
        move = start(node, "b")
        number, flusher = 20, node.broker.flusher
        waits: list[asyncio.Future[None]] = []
        while node.broker.log_dir_moves._tasks:
            append(node, number)
            waits.append(flusher.when_flushed(node.partition("t").log))
            number += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*waits)
        assert move.state is MoveState.DONE
        log = node.partition("t").log
        assert log.recovery_point == log.log_end_offset == number


# Changes of the log during a move


@on_loop
async def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True, internal_segment_bytes="400") as node:
        move = start(node, "b")
        await one_step(node, move)
        partition = node.partition("t")
        partition.delete_records(13)
        partition.log.delete_old_segments(node.clock.wall_ms())
        assert partition.log.first_segment_offset > move.future.log_end_offset
        before = bytes_of(partition)
        await ended(node)
        assert partition.log is move.future
        assert partition.log.log_start_offset == 13
        assert bytes_of(partition) == before
        assert not list(partition.log.directory.glob("*.deleted"))


@on_loop
async def test_a_log_emptied_meanwhile_moves_empty(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True, internal_segment_bytes="400") as node:
        move = start(node, "b")
        await one_step(node, move)
        partition = node.partition("t")
        partition.delete_records(-1)
        partition.log.roll()
        partition.log.delete_old_segments(node.clock.wall_ms())
        await ended(node)
        assert partition.log is move.future
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (20, 20)
        append(node, 20)


@on_loop
async def test_records_truncated_and_rewritten_meanwhile_are_copied(tmp_path: Path) -> None:
    async with node_with(tmp_path, internal_segment_bytes="400") as node:
        move = start(node, "b")
        partition = node.partition("t")
        while move.future.log_end_offset < 12:
            await asyncio.sleep(0)
        partition.log.truncate_to(9)
        partition.leader_epoch = 2
        append(node, *range(100, 108))
        before = bytes_of(partition)
        await ended(node)
        assert partition.log is move.future
        assert bytes_of(partition) == before
        assert partition.log.epochs.entries == ((0, 0), (2, 9))


@on_loop
async def test_a_changed_topic_config_applies_to_the_new_log(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True) as node:
        move = start(node, "b")
        await one_step(node, move)
        config = node.partition("t").log.config
        node.partition("t").reconfigure(config.__class__(retention_ms=77))
        await ended(node)
        assert node.partition("t").log is move.future
        assert node.partition("t").log.config.retention_ms == 77


@on_loop
async def test_a_deleted_topic_leaves_no_files(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True, file_delete_delay_ms="0") as node:
        move = start(node, "b")
        await one_step(node, move)
        await node.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
        await ended(node)
        assert move.state is MoveState.CANCELLED
        assert found_in(tmp_path) == {"a": ["deleted"], "b": ["deleted"]}
        node.log_manager.deletions.remove_due(node.clock.monotonic_ms())
        assert found_in(tmp_path) == {}
        await node.create(new_topic("t"))
        assert node.partition("t").log.log_end_offset == 0


# Further requests


@on_loop
async def test_a_move_to_the_current_directory_cancels_the_move(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True) as node:
        move = start(node, "b")
        await one_step(node, move)
        start(node, "a")
        await ended(node)
        append(node, 20)
        assert move.state is MoveState.CANCELLED
        assert node.partition("t").log.directory.parent.name == "a"
        assert found_in(tmp_path) == {"a": ["log"], "b": ["deleted"]}


@on_loop
async def test_a_move_to_a_third_directory_starts_again(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True) as node:
        first = start(node, "b")
        await one_step(node, first)
        assert start(node, "b") is first
        second = start(node, "c")
        before = bytes_of(node.partition("t"))
        await ended(node)
        assert (first.state, second.state) == (MoveState.CANCELLED, MoveState.DONE)
        assert node.partition("t").log.directory.parent.name == "c"
        assert bytes_of(node.partition("t")) == before


@on_loop
async def test_a_move_can_be_reversed_immediately(tmp_path: Path) -> None:
    async with node_with(tmp_path) as node:
        before = bytes_of(node.partition("t"))
        for to in ("b", "a", "c", "a"):
            move = start(node, to)
            while move.state is MoveState.COPYING:
                await asyncio.sleep(0)
            assert move.state is MoveState.PROMOTED
        await ended(node)
        assert node.partition("t").log.directory == tmp_path / "a" / "t-0"
        assert bytes_of(node.partition("t")) == before
        assert node.broker.log_dir_moves.statistics() == {"moved_count": 4, "moves": []}


@on_loop
async def test_moves_in_progress_are_listed(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True) as node:
        move = start(node, "b")
        await one_step(node, move)
        [seen] = node.broker.log_dir_moves.statistics()["moves"]  # type: ignore[misc]
        assert (seen["partition"], seen["state"], seen["to"]) == ("t-0", "copying", str(tmp_path / "b"))
        assert seen["copied_bytes"] == move.future.size_bytes > 0
        assert seen["missing_offsets"] == 20 - move.future.log_end_offset


# Disk failures


def broken(*arguments: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("what", ["base.disk.write_at", "replication.log_dir_moves.unlink_files"])
@on_loop
async def test_a_failing_destination_disk_leaves_the_log_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with node_with(tmp_path, held=True) as node:
        move = start(node, "b")
        await one_step(node, move)
        node.partition("t").log.truncate_fully_and_start_at(30)
        append(node, 30)
        with monkeypatch.context() as patch:
            patch.setattr(f"barnabas.{what}", broken)
            await ended(node)
        append(node, 31)
        assert move.state is MoveState.FAILED
        assert "Input/output error" in move.story[-1]
        assert [each.failure is None for each in node.log_manager.directories] == [True, False, True]
        assert node.partition("t").log.directory.parent.name == "a"


@on_loop
async def test_a_failing_source_disk_ends_the_move_and_keeps_the_copy(tmp_path: Path) -> None:
    async with node_with(tmp_path, held=True) as node:
        move = start(node, "b")
        await one_step(node, move)
        node.partition("t").log.take_offline(OSError(5, "Input/output error"))
        await ended(node)
        assert move.state is MoveState.FAILED
        assert found_in(tmp_path) == {"a": ["log"], "b": ["future"]}


@on_loop
async def test_a_log_that_cannot_be_read_goes_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_with(tmp_path) as node:
        move = start(node, "b")
        with monkeypatch.context() as patch:
            patch.setattr("os.pread", broken)
            await ended(node)
        assert move.state is MoveState.FAILED
        assert node.partition("t").log.failure is not None


@pytest.mark.parametrize("offset", [10, 19])
@on_loop
async def test_a_damaged_log_ends_the_move_and_stays_in_use(tmp_path: Path, offset: int) -> None:
    async with node_with(tmp_path) as node:
        path = tmp_path / "a" / "t-0" / f"{0:020d}.log"
        data = bytearray(path.read_bytes())
        position = next(at for at, header in iterate_headers(data) if header.base_offset == offset)
        data[position + BATCH_HEADER_BYTES] ^= 0xFF
        path.write_bytes(data)
        move = start(node, "b")
        await ended(node)
        append(node, 20)
        assert move.state is MoveState.FAILED
        assert found_in(tmp_path) == {"a": ["log"], "b": ["deleted"]}


# Restarts


@pytest.mark.parametrize("killed", [True, False])
@on_loop
async def test_a_move_continues_after_a_restart(tmp_path: Path, killed: bool) -> None:
    store = MemoryStore()
    async with node_with(tmp_path, store, held=True, internal_segment_bytes="400") as node:
        move = start(node, "b")
        await one_step(node, move)
        append(node, 20)
        before = bytes_of(node.partition("t"))
        if killed:
            kill(node)
    assert found_in(tmp_path) == {"a": ["log"], "b": ["future"]}
    async with node_with(tmp_path, store, held=True) as node:
        assert node.log_manager.futures[T0].log_end_offset == move.future.log_end_offset > 0
        await ended(node)
        assert node.partition("t").log.directory.parent.name == "b"
        assert bytes_of(node.partition("t")) == before


@on_loop
async def test_a_move_continues_after_its_log_lost_records_in_a_power_failure(tmp_path: Path) -> None:
    store = MemoryStore()
    async with node_with(tmp_path, store, held=True) as node:
        await one_step(node, move := start(node, "b"))
        while move.future.log_end_offset < 12:
            await one_step(node, move)
        kill(node)
    path = tmp_path / "a" / "t-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1000])
    async with node_with(tmp_path, store, held=True) as node:
        assert node.partition("t").log.log_end_offset < 12
        append(node, 100)
        before = bytes_of(node.partition("t"))
        await ended(node)
        assert bytes_of(node.partition("t")) == before


@pytest.mark.parametrize("appended_count", [0, 1])
@on_loop
async def test_a_kill_before_the_old_log_is_deleted_keeps_the_new_one(
    tmp_path: Path, appended_count: int
) -> None:
    store = MemoryStore()
    async with node_with(tmp_path, store) as node:
        node.partition("t").delete_records(3)
        move = start(node, "b")
        while move.state is MoveState.COPYING:
            await asyncio.sleep(0)
        assert found_in(tmp_path) == {"a": ["log"], "b": ["log"]}
        append(node, *range(appended_count))
        before = bytes_of(node.partition("t"), 3)
        node.broker.log_dir_moves._abruptly = True
        node.broker.log_dir_moves.stop = no_stop  # type: ignore[method-assign]
        await ended(node)
        kill(node)
    assert found_in(tmp_path) == {"a": ["log"], "b": ["log"]}
    async with node_with(tmp_path, store) as node:
        assert node.partition("t").log.directory == tmp_path / "b" / "t-0"
        assert found_in(tmp_path) == {"a": ["deleted"], "b": ["log"]}
        assert bytes_of(node.partition("t"), 3) == before


async def no_stop(*, abruptly: bool) -> None:
    """Stop the node without a move in progress."""
