import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction import cleaner as module
from barnabas.log.compaction import offset_map
from barnabas.log.compaction.cleaner import LogCleaner
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.compaction.offset_map import ENTRY_BYTES, SLOT_BYTES
from barnabas.log.copied_state import copy_state
from barnabas.log.gap import begin_epoch_at_gap
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.wire.records.record import Record, encode_batch
from support.compaction import CLEANER_SETTINGS as SETTINGS
from support.compaction import offsets_of
from support.kernels import INTERPRETED_TABLE
from support.loop import on_loop
from support.waiting import reached

COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}))


class CleanerNode:
    """Two log directories, a cleaner for them, and the files that it has replaced."""

    def __init__(self, tmp_path: Path, clock: ManualClock) -> None:
        self.paths = [tmp_path / "a", tmp_path / "b"]
        self.clock = clock
        self.log_manager = LogManager.open(
            self.paths, cluster_id="c", node_id=1, clock=clock, random=Random(0)
        )
        self.log_manager.load(lambda topic: COMPACT)
        self.settings = SETTINGS
        self.worker = LogWorker(self.log_manager, clock, lambda: self.settings.bytes_per_second)
        self.cleaner = LogCleaner(self.log_manager, clock, lambda: self.settings, self.worker)
        self.replaced: list[Path] = []
        self.cleaner.on_replaced = lambda log, files: self.replaced.extend(files)

    def log(self, topic: str, keys: str = "aab", config: LogConfig = COMPACT) -> PartitionLog:
        """Create a log with one record per letter of `keys`, each in its own segment."""
        log = self.log_manager.create(topic, 0, topic.encode().ljust(16), config)
        self.append(log, keys)
        return log

    def append(self, log: PartitionLog, keys: str) -> None:
        for key in keys:
            batch = encode_batch([Record(0, self.clock.now_ms, key.encode(), b"v" * 1_000)])
            log.append_as_leader(memoryview(batch), 0)
            log.roll()
        log.update_high_watermark(log.log_end_offset)

    def checkpoint(self, directory: int) -> str:
        return (self.paths[directory] / "cleaner-offset-checkpoint").read_text()

    async def clean_once(self) -> None:
        candidate = await self.cleaner.filthiest()
        assert candidate
        await self.cleaner._clean_if_possible(*candidate)


@asynccontextmanager
async def running_cleaner(tmp_path: Path, clock: ManualClock) -> AsyncIterator[CleanerNode]:
    node = CleanerNode(tmp_path, clock)
    try:
        yield node
    finally:
        await node.cleaner.stop()
        node.worker.close()
        node.log_manager.close()


@on_loop
async def test_every_log_that_is_due_is_compacted_and_checkpointed(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        first, second, other = node.log("x"), node.log("y", "abcab"), node.log("z", config=LogConfig())
        node.cleaner.start()
        await reached(lambda: node.cleaner.cleaned_count == 2)
        assert (offsets_of(first), offsets_of(second), offsets_of(other)) == ([1, 2], [2, 3, 4], [0, 1, 2])
        assert node.checkpoint(0) == "0\n1\nx 0 3\n"
        assert node.checkpoint(1) == "0\n1\ny 0 5\n"
        assert {path.suffix for path in node.replaced} == {".deleted"}
        assert await node.cleaner.filthiest() is None
        assert node.cleaner.max_dirty_ratio == 0.0
        statistics = node.cleaner.statistics()
        assert (statistics["cleaned_count"], statistics["uncleanable"]) == (2, {})
        assert (statistics["failures_count"], statistics["max_overdue_ms"]) == (0, 0)
        clock.advance(70)
        assert node.cleaner.time_since_last_check_ms == 70


@pytest.mark.parametrize(("kernels", "entry_bytes"), [(INTERPRETED_TABLE, SLOT_BYTES), (None, ENTRY_BYTES)])
@on_loop
async def test_the_use_of_the_key_table_is_measured(
    tmp_path: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    kernels: ModuleType | None,
    entry_bytes: int,
) -> None:
    monkeypatch.setattr(offset_map, "MANY_KEYS_COUNT", 1)
    monkeypatch.setattr(offset_map, "find_table_kernels", lambda: kernels)
    async with running_cleaner(tmp_path, clock) as node:
        node.settings = SETTINGS._replace(threads_count=2)
        log = node.log("x", "abcab")
        await node.clean_once()
        assert offsets_of(log) == [2, 3, 4]
        assert node.cleaner.last_table_use == 3 * entry_bytes / (SETTINGS.dedupe_buffer_bytes / 2)


@on_loop
async def test_the_filthiest_log_comes_first(tmp_path: Path, clock: ManualClock) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        half, fully_dirty, below = node.log("x", "aabb"), node.log("y", "ab"), node.log("z", "abcdef")
        half.cleaner_offset, below.cleaner_offset = 1, 5
        candidate = await node.cleaner.filthiest()
        assert candidate
        assert candidate[0] is fully_dirty
        await node.clean_once()
        await node.clean_once()
        assert await node.cleaner.filthiest() is None
        assert (half.cleaner_offset, below.cleaner_offset) == (4, 5)
        assert node.cleaner.max_dirty_ratio == pytest.approx(1 / 6)


@on_loop
async def test_the_check_of_many_logs_pauses(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKED_AT_COUNT", 2)
    async with running_cleaner(tmp_path, clock) as node:
        logs = [node.log(f"t{number}") for number in range(5)]
        check = asyncio.ensure_future(node.cleaner.filthiest())
        for _ in range(3):
            assert not check.done()
            await asyncio.sleep(0)
        assert (await check or (None,))[0] is logs[0]


@on_loop
async def test_a_log_that_changes_during_the_check_is_not_compacted_by_what_it_was(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKED_AT_COUNT", 1)
    async with running_cleaner(tmp_path, clock) as node:
        log, deleted = node.log("x", "aab"), node.log("y", "aab")
        log.cleaner_offset = 1
        check = asyncio.ensure_future(node.cleaner.filthiest())
        for _ in range(2):
            await asyncio.sleep(0)
        node.log_manager.schedule_deletion(deleted.topic_partition)
        assert await check is None
        log.cleaner_offset = 0
        check = asyncio.ensure_future(node.cleaner.filthiest())
        await asyncio.sleep(0)
        log.truncate_to(2)
        found = await check
        assert found
        assert found[1].first_uncleanable_offset == 2


@on_loop
async def test_the_age_of_a_segment_is_read_only_once(tmp_path: Path, clock: ManualClock) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=1_000)
    async with running_cleaner(tmp_path, clock) as node:
        node.log("x", "abc", config)
    async with running_cleaner(tmp_path, clock) as again:
        log = again.log_manager.logs[TopicPartition("x", 0)]
        log.config = config
        clock.advance(3_000)
        for is_open in (True, False):
            assert await again.cleaner.filthiest() is not None
            assert again.cleaner.max_overdue_ms == 2_000
            assert [segment.is_open for segment in log.segments.rolled] == [is_open] * 3
            log.local.use_open_files(OpenFiles())  # closes all


@on_loop
async def test_the_cleaner_offset_survives_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        node.log("x")
        await node.clean_once()
    async with running_cleaner(tmp_path, clock) as again:
        assert again.log_manager.logs[TopicPartition("x", 0)].cleaner_offset == 3
        assert await again.cleaner.filthiest() is None


@on_loop
async def test_a_damaged_log_is_uncleanable_and_does_not_stop_others(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, object]] = []

    class Log:
        def error(self, event: str, **fields: object) -> None:
            lines.append(fields)

        def info(self, event: str, **fields: object) -> None:
            pass

    monkeypatch.setattr(module, "_log", Log())
    async with running_cleaner(tmp_path, clock) as node:
        bad, good = node.log("x"), node.log("y")
        path = bad.segments[1].path
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        node.cleaner.start()
        await reached(lambda: node.cleaner.cleaned_count == 1 and bool(node.cleaner.uncleanable))
        [uncleanable] = node.cleaner.uncleanable
        assert uncleanable.log is bad
        assert "does not match its CRC" in uncleanable.why
        assert (offsets_of(good), bad.cleaner_offset, bad.failure) == ([1, 2], 0, None)
        assert [line["partition"] for line in lines] == ["x-0"]
        node.log_manager.schedule_deletion(TopicPartition("x", 0))
        assert node.cleaner.uncleanable == []
        assert node.log("x")
        await reached(lambda: node.cleaner.cleaned_count == 2)


@pytest.mark.parametrize(("number", "is_offline"), [(28, False), (5, True)])
@on_loop
async def test_a_full_disk_makes_the_log_uncleanable_and_a_disk_error_takes_it_offline(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, number: int, is_offline: bool
) -> None:
    def broken(*_: object) -> int:
        raise OSError(number, "of the disk")

    async with running_cleaner(tmp_path, clock) as node:
        log = node.log("x")
        with monkeypatch.context() as patch:
            patch.setattr("barnabas.base.disk.write_at", broken)
            await node.clean_once()
        assert (log.failure is not None) == is_offline
        assert len(node.cleaner.uncleanable) == (not is_offline)
        assert node.cleaner.failures_count == 1
        assert await node.cleaner.filthiest() is None
        assert not list(log.directory.glob("*.cleaned"))


Change = Callable[[CleanerNode, PartitionLog], object]


def lead_with_a_gap(node: CleanerNode, log: PartitionLog) -> None:
    log.gap_offset = 1
    begin_epoch_at_gap(log, 7)


@pytest.mark.parametrize(
    "change",
    [
        lambda node, log: node.log_manager.schedule_deletion(log.topic_partition),
        lambda node, log: log.truncate_to(1),
        lambda node, log: node.log_manager.create_future(
            log.topic_partition, node.log_manager.directories[1]
        ),
        lambda node, log: log.increment_log_start_offset(2) and log.delete_old_segments(0),
        lambda node, log: node.worker.stopping.set(),
        lead_with_a_gap,
    ],
    ids=["deleted", "truncated", "moving", "first-segments-gone", "stopping", "another-epoch-behind-a-gap"],
)
@on_loop
async def test_cleaned_segments_are_discarded_if_the_log_has_changed(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        log = node.log("x", "aab")
        swap = node.worker.swap

        def changed_before(*arguments: object) -> list[Path]:
            change(node, log)
            return swap(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(node.worker, "swap", changed_before)
        await node.clean_once()
        assert node.cleaner.cleaned_count == 0
        assert node.cleaner.uncleanable == []
        assert node.replaced == []
        assert not list(tmp_path.glob("?/x-0/*.cleaned"))
        assert log.cleaner_offset == 0


@pytest.mark.parametrize("is_deleted", [True, False])
@on_loop
async def test_a_missing_file_is_not_a_disk_error(
    tmp_path: Path, clock: ManualClock, is_deleted: bool
) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        log = node.log("x", "aab")
        candidate = await node.cleaner.filthiest()
        assert candidate
        if is_deleted:
            log.increment_log_start_offset(2)
            steps = node.worker.drive

            async def delete_meanwhile(*arguments: object) -> object:
                log.delete_old_segments(0)
                return await steps(*arguments)  # type: ignore[arg-type]

            node.worker.drive = delete_meanwhile  # type: ignore[method-assign,assignment]
        else:
            log.segments[0].path.unlink()
        await node.cleaner._clean_if_possible(*candidate)
        assert log.failure is None
        assert len(node.cleaner.uncleanable) == (not is_deleted)


@on_loop
async def test_a_log_that_is_being_moved_is_not_compacted(tmp_path: Path, clock: ManualClock) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        log = node.log("x")
        node.log_manager.create_future(log.topic_partition, node.log_manager.directories[1])
        assert await node.cleaner.filthiest() is None
        node.log_manager.drop_future(log.topic_partition)
        assert await node.cleaner.filthiest() is not None


@on_loop
async def test_the_cleaner_offset_is_kept_when_a_log_is_moved(tmp_path: Path, clock: ManualClock) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        log, name = node.log("x"), TopicPartition("x", 0)
        await node.clean_once()
        future = node.log_manager.create_future(name, node.log_manager.directories[1])
        for segment in log.segments:
            if segment.size_bytes:
                future.append_copied(segment.view(0, segment.size_bytes))
        copy_state(log, future)
        node.log_manager.replace_current_with_future(name)
        node.log_manager.checkpoint()
        assert node.checkpoint(0) == "0\n0\n"
        assert node.checkpoint(1) == "0\n1\nx 0 3\n"
        assert offsets_of(future) == [1, 2]


@on_loop
async def test_the_cleaner_is_throttled_to_its_bytes_per_second(tmp_path: Path, clock: ManualClock) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        log = node.log("x", "aaaabbbb")
        node.settings = SETTINGS._replace(bytes_per_second=1_000.0)
        node.cleaner.start()
        await reached(lambda: node.worker.throttle.wait_ms(1_000.0, clock.now_ms) > 0)
        assert node.cleaner.cleaned_count == 0
        node.settings = SETTINGS
        await reached(lambda: node.cleaner.cleaned_count == 1)
        assert log.cleaner_offset == 8


@on_loop
async def test_the_cleaner_pauses_a_little_even_with_a_backoff_of_0(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []
    wait = asyncio.wait

    async def recording_wait(*arguments: Any, timeout: float, **options: Any) -> object:
        timeouts.append(timeout)
        return await wait(*arguments, timeout=timeout, **options)

    monkeypatch.setattr(asyncio, "wait", recording_wait)
    async with running_cleaner(tmp_path, clock) as node:
        node.settings = SETTINGS._replace(backoff_ms=0)
        node.cleaner.start()
        await reached(lambda: timeouts)
    assert set(timeouts) == {module.REST_MS_MIN / 1000}


@on_loop
async def test_two_threads_compact_two_logs_and_zero_threads_compact_none(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_cleaner(tmp_path, clock) as node:
        node.log("x"), node.log("y")
        node.settings = SETTINGS._replace(threads_count=0)
        node.cleaner.start()
        await asyncio.sleep(0)
        assert node.cleaner.statistics()["running"] == []
        node.settings = SETTINGS._replace(threads_count=2)
        await reached(lambda: node.cleaner.statistics()["running"] == ["x-0", "y-0"])
        await reached(lambda: node.cleaner.cleaned_count == 2)


def test_step_sizes_follow_buffer_size_threads_and_rate_limit() -> None:
    for settings, step_bytes in (
        (SETTINGS, 1 << 19),
        (SETTINGS._replace(threads_count=4), 1 << 17),
        (SETTINGS._replace(io_buffer_bytes=0), 4_096),
        (SETTINGS._replace(bytes_per_second=10_000.0), 10_000),
    ):
        assert settings.step_bytes == step_bytes
