import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction import cleaner as module
from barnabas.log.compaction import offset_map
from barnabas.log.compaction.cleaner import LogCleaner
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.compaction.offset_map import ENTRY_BYTES
from barnabas.log.compaction.offset_map_numpy import SLOT_BYTES
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.records.record import Record, encode_batch
from support.compaction import CLEANER_SETTINGS as SETTINGS
from support.compaction import offsets_of
from support.loop import on_loop
from support.waiting import reached

COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}))


class Home:
    """Two directories, the cleaner over them, and what it has replaced."""

    def __init__(self, tmp_path: Path, clock: ManualClock) -> None:
        self.paths = [tmp_path / "a", tmp_path / "b"]
        self.clock = clock
        self.directories = LogManager.open(
            self.paths, cluster_id="c", node_id=1, clock=clock, random=Random(0)
        )
        self.directories.load(lambda topic: COMPACT)
        self.settings = SETTINGS
        self.worker = LogWorker(self.directories, clock, lambda: self.settings.bytes_per_second)
        self.cleaner = LogCleaner(self.directories, clock, lambda: self.settings, self.worker)
        self.replaced: list[Path] = []
        self.cleaner.on_replaced = lambda log, files: self.replaced.extend(files)

    def log(self, topic: str, keys: str = "aab", config: LogConfig = COMPACT) -> PartitionLog:
        """A log with a record for each letter, its key, in segments of their own."""
        log = self.directories.create(topic, 0, topic.encode().ljust(16), config)
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
        found = self.cleaner.filthiest()
        assert found
        await self.cleaner._clean_if_possible(*found)


@asynccontextmanager
async def home(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Home]:
    made = Home(tmp_path, clock)
    try:
        yield made
    finally:
        await made.cleaner.stop()
        made.worker.close()
        made.directories.close()


@on_loop
async def test_every_log_that_is_due_is_compacted_and_written_down(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        first, second, other = the.log("x"), the.log("y", "abcab"), the.log("z", config=LogConfig())
        the.cleaner.start()
        await reached(lambda: the.cleaner.cleaned_count == 2)
        assert (offsets_of(first), offsets_of(second), offsets_of(other)) == ([1, 2], [2, 3, 4], [0, 1, 2])
        assert the.checkpoint(0) == "0\n1\nx 0 3\n"
        assert the.checkpoint(1) == "0\n1\ny 0 5\n"
        assert {path.suffix for path in the.replaced} == {".deleted"}
        assert the.cleaner.filthiest() is None
        assert the.cleaner.max_dirty_ratio == 0.0
        statistics = the.cleaner.statistics()
        assert (statistics["cleaned_count"], statistics["uncleanable"]) == (2, {})
        assert (statistics["failures_count"], statistics["max_overdue_ms"]) == (0, 0)
        clock.advance(70)
        assert the.cleaner.time_since_last_check_ms == 70


@pytest.mark.parametrize(("many_count", "entry_bytes"), [(1, SLOT_BYTES), (100, ENTRY_BYTES)])
@on_loop
async def test_the_table_of_keys_is_of_the_size_that_is_told(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, many_count: int, entry_bytes: int
) -> None:
    monkeypatch.setattr(offset_map, "MANY_KEYS_COUNT", many_count)
    async with home(tmp_path, clock) as the:
        the.settings = SETTINGS._replace(threads_count=2)
        log = the.log("x", "abcab")
        await the.clean_once()
        assert offsets_of(log) == [2, 3, 4]
        assert the.cleaner.last_table_use == 3 * entry_bytes / (SETTINGS.dedupe_buffer_bytes / 2)


@on_loop
async def test_the_filthiest_log_comes_first(tmp_path: Path, clock: ManualClock) -> None:
    async with home(tmp_path, clock) as the:
        half, all_of_it, below = the.log("x", "aabb"), the.log("y", "ab"), the.log("z", "abcdef")
        half.cleaner_offset, below.cleaner_offset = 1, 5
        found = the.cleaner.filthiest()
        assert found
        assert found[0] is all_of_it
        await the.clean_once()
        await the.clean_once()
        assert the.cleaner.filthiest() is None
        assert (half.cleaner_offset, below.cleaner_offset) == (4, 5)
        assert the.cleaner.max_dirty_ratio == pytest.approx(1 / 6)


@on_loop
async def test_a_start_goes_on_where_the_last_one_was(tmp_path: Path, clock: ManualClock) -> None:
    async with home(tmp_path, clock) as the:
        the.log("x")
        await the.clean_once()
    async with home(tmp_path, clock) as again:
        assert again.directories.logs[TopicPartition("x", 0)].cleaner_offset == 3
        assert again.cleaner.filthiest() is None


@on_loop
async def test_a_damaged_log_is_left_alone_and_holds_up_no_other(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, object]] = []

    class Log:
        def error(self, event: str, **fields: object) -> None:
            lines.append(fields)

        def info(self, event: str, **fields: object) -> None:
            pass

    monkeypatch.setattr(module, "_log", Log())
    async with home(tmp_path, clock) as the:
        bad, good = the.log("x"), the.log("y")
        path = bad.segments[1].path
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        the.cleaner.start()
        await reached(lambda: the.cleaner.cleaned_count == 1 and bool(the.cleaner.uncleanable))
        [uncleanable] = the.cleaner.uncleanable
        assert uncleanable.log is bad
        assert "does not match its CRC" in uncleanable.why
        assert (offsets_of(good), bad.cleaner_offset, bad.failure) == ([1, 2], 0, None)
        assert [line["partition"] for line in lines] == ["x-0"]
        the.directories.delete_async(TopicPartition("x", 0))
        assert the.cleaner.uncleanable == []
        assert the.log("x")
        await reached(lambda: the.cleaner.cleaned_count == 2)


@pytest.mark.parametrize(("number", "is_offline"), [(28, False), (5, True)])
@on_loop
async def test_a_full_disk_costs_the_pass_and_a_broken_one_the_directory(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, number: int, is_offline: bool
) -> None:
    def broken(*_: object) -> int:
        raise OSError(number, "of the disk")

    async with home(tmp_path, clock) as the:
        log = the.log("x")
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", broken)
            await the.clean_once()
        assert (log.failure is not None) == is_offline
        assert len(the.cleaner.uncleanable) == (not is_offline)
        assert the.cleaner.failures_count == 1
        assert the.cleaner.filthiest() is None
        assert not list(log.directory.glob("*.cleaned"))


Change = Callable[[Home, PartitionLog], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda the, log: the.directories.delete_async(log.topic_partition),
        lambda the, log: log.truncate_to(1),
        lambda the, log: the.directories.create_future(log.topic_partition, the.directories.directories[1]),
        lambda the, log: log.increment_log_start_offset(2) and log.delete_old_segments(0),
        lambda the, log: the.worker.stopping.set(),
    ],
    ids=["deleted", "truncated", "moving", "first-segments-gone", "stopping"],
)
@on_loop
async def test_what_was_written_for_a_log_that_has_changed_is_thrown_away(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log("x", "aab")
        swap = the.worker.swap

        def changed_before(*arguments: object) -> list[Path]:
            change(the, log)
            return swap(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(the.worker, "swap", changed_before)
        await the.clean_once()
        assert the.cleaner.cleaned_count == 0
        assert the.cleaner.uncleanable == []
        assert the.replaced == []
        assert not list(tmp_path.glob("?/x-0/*.cleaned"))
        assert log.cleaner_offset == 0


@pytest.mark.parametrize("is_let_go", [True, False])
@on_loop
async def test_a_file_that_is_gone_is_no_failure_of_the_disk(
    tmp_path: Path, clock: ManualClock, is_let_go: bool
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log("x", "aab")
        found = the.cleaner.filthiest()
        assert found
        if is_let_go:
            log.increment_log_start_offset(2)
            steps = the.worker.drive

            async def let_go_meanwhile(*arguments: object) -> object:
                log.delete_old_segments(0)
                return await steps(*arguments)  # type: ignore[arg-type]

            the.worker.drive = let_go_meanwhile  # type: ignore[method-assign,assignment]
        else:
            log.segments[0].path.unlink()
        await the.cleaner._clean_if_possible(*found)
        assert log.failure is None
        assert len(the.cleaner.uncleanable) == (not is_let_go)


@on_loop
async def test_a_log_on_its_way_to_another_directory_is_left_alone(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log("x")
        the.directories.create_future(log.topic_partition, the.directories.directories[1])
        assert the.cleaner.filthiest() is None
        the.directories.drop_future(log.topic_partition)
        assert the.cleaner.filthiest() is not None


@on_loop
async def test_how_far_a_log_is_compacted_goes_along_to_another_directory(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        log, name = the.log("x"), TopicPartition("x", 0)
        await the.clean_once()
        future = the.directories.create_future(name, the.directories.directories[1])
        for segment in log.segments:
            if segment.size_bytes:
                future.append_as_follower(segment.view(0, segment.size_bytes))
        future.copy_state_from(log)
        the.directories.replace_current_with_future(name)
        the.directories.checkpoint()
        assert the.checkpoint(0) == "0\n0\n"
        assert the.checkpoint(1) == "0\n1\nx 0 3\n"
        assert offsets_of(future) == [1, 2]


@on_loop
async def test_a_bound_on_bytes_per_second_holds_the_cleaner_back(tmp_path: Path, clock: ManualClock) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log("x", "aaaabbbb")
        the.settings = SETTINGS._replace(bytes_per_second=1_000.0)
        the.cleaner.start()
        await reached(lambda: the.worker.throttle.wait_ms(1_000.0, clock.now_ms) > 0)
        assert the.cleaner.cleaned_count == 0
        the.settings = SETTINGS
        await reached(lambda: the.cleaner.cleaned_count == 1)
        assert log.cleaner_offset == 8


@on_loop
async def test_the_cleaner_rests_a_little_even_where_it_need_not(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []
    wait = asyncio.wait

    async def noted(*arguments: Any, timeout: float, **options: Any) -> object:
        timeouts.append(timeout)
        return await wait(*arguments, timeout=timeout, **options)

    monkeypatch.setattr(asyncio, "wait", noted)
    async with home(tmp_path, clock) as the:
        the.settings = SETTINGS._replace(backoff_ms=0)
        the.cleaner.start()
        await reached(lambda: timeouts)
    assert set(timeouts) == {module.REST_MS_MIN / 1000}


@on_loop
async def test_two_threads_compact_two_logs_and_none_compact_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        the.log("x"), the.log("y")
        the.settings = SETTINGS._replace(threads_count=0)
        the.cleaner.start()
        await asyncio.sleep(0)
        assert the.cleaner.statistics()["under_way"] == []
        the.settings = SETTINGS._replace(threads_count=2)
        await reached(lambda: the.cleaner.statistics()["under_way"] == ["x-0", "y-0"])
        await reached(lambda: the.cleaner.cleaned_count == 2)


def test_small_buffers_and_low_bounds_still_make_steps() -> None:
    for settings, step_bytes in (
        (SETTINGS, 1 << 19),
        (SETTINGS._replace(threads_count=4), 1 << 17),
        (SETTINGS._replace(io_buffer_bytes=0), 4_096),
        (SETTINGS._replace(bytes_per_second=10_000.0), 10_000),
    ):
        assert settings.step_bytes == step_bytes
