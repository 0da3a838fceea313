"""The log cleaner: compacts the logs that need it most, in threads, in steps and at a limited rate.

New segments replace the old ones on the event loop, where no read or append runs at the same time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction.cleaning_pass import Cleaner, CleaningPlan, Source, last_records
from barnabas.log.compaction.log_to_clean import LogBounds, LogToClean, decide_cleanable, group_segments
from barnabas.log.compaction.log_worker import Interrupted, LogWork, LogWorker
from barnabas.log.compaction.offset_map import offset_map_of_size
from barnabas.log.files import INDEX_SUFFIX, NO_SPACE, TIME_INDEX_SUFFIX, offset_file
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segment import Segment
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import KafkaError

#: Smallest number of bytes that a step reads.
STEP_BYTES_MIN = 4096

#: Shortest pause between checks, even if `log.cleaner.backoff.ms` is 0: they run on the event loop.
REST_MS_MIN = 10

#: Number of logs that are checked before the event loop continues with other work.
LOOKED_AT_COUNT = 100

_log = get_logger("barnabas.log.compaction.cleaner")


class CleanerSettings(NamedTuple):
    """The broker configs `log.cleaner.*`; memory and rate are totals over all threads."""

    threads_count: int
    backoff_ms: int
    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int
    bytes_per_second: float

    @property
    def step_bytes(self) -> int:
        """A thread's share of the read buffer; smaller under a low rate limit, to spread the reads over the second."""
        share = self.io_buffer_bytes // max(self.threads_count, 1) // 2
        return max(int(min(share, self.bytes_per_second)), STEP_BYTES_MIN)


class Uncleanable(NamedTuple):
    """A log that could not be compacted, and is skipped until the next start."""

    log: PartitionLog
    why: str


class LogCleaner:
    """Compacts logs in the background. All methods run on the event loop."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        settings: Callable[[], CleanerSettings],
        worker: LogWorker,
    ) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._get_settings = settings
        #: Called with the files of replaced segments, which readers may still have open.
        self.on_replaced: Callable[[PartitionLog, list[Path]], None] = lambda log, files: None
        self._worker = worker
        self._running: asyncio.Task[None] | None = None
        self._under_way: dict[PartitionLog, asyncio.Task[None]] = {}
        self._uncleanable: dict[TopicPartition, Uncleanable] = {}
        self.cleaned_count = 0
        self.read_bytes = 0
        self.written_bytes = 0
        #: The largest dirty ratio at the last check of all logs.
        self.max_dirty_ratio = 0.0
        #: Time in milliseconds that the longest waiting record was overdue at the last check of all logs.
        self.max_overdue_ms = 0
        #: Failed passes; interrupted ones do not count.
        self.failures_count = 0
        #: Duration of the last pass, and the fraction of the key table that it used.
        self.last_clean_ms = 0
        self.last_table_use = 0.0
        #: End of the last pass, on the monotonic clock.
        self._last_cleaned_ms = clock.monotonic_ms()
        #: Time of the last check of all logs, on the monotonic clock.
        self._last_checked_ms = self._last_cleaned_ms

    @property
    def settings(self) -> CleanerSettings:
        """The current settings."""
        return self._get_settings()

    # Selecting logs

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run(), name="log-cleaner")

    async def stop(self) -> None:
        """Stop after the current steps; unfinished passes begin again after the next start."""
        self._worker.stopping.set()
        if self._running is not None:
            await self._running
        await asyncio.gather(*self._under_way.values())

    async def _run(self) -> None:
        while not self._worker.stopping.is_set():
            settings = self.settings
            while len(self._under_way) < settings.threads_count:
                candidate = await self.filthiest()
                if candidate is None:
                    break
                self._begin(*candidate)
            await self._rest(settings.backoff_ms)

    async def _rest(self, backoff_ms: int) -> None:
        """Wait until a pass ends, or for the backoff."""
        stopping = asyncio.ensure_future(self._worker.stopping.wait())
        await asyncio.wait(
            (stopping, *self._under_way.values()),
            timeout=max(backoff_ms, REST_MS_MIN) / 1000,
            return_when=asyncio.FIRST_COMPLETED,
        )
        stopping.cancel()

    def _begin(self, log: PartitionLog, cleanable: LogToClean) -> None:
        task = asyncio.get_running_loop().create_task(self._clean_if_possible(log, cleanable))
        self._under_way[log] = task
        task.add_done_callback(lambda _: self._under_way.pop(log))

    async def filthiest(self) -> tuple[PartitionLog, LogToClean] | None:
        """Return the log with the largest dirty ratio among those that are due and can be cleaned now."""
        now_ms = self._clock.wall_ms()
        self._last_checked_ms = self._clock.monotonic_ms()
        max_dirty_ratio, max_overdue_ms = 0.0, 0
        due: list[tuple[float, PartitionLog]] = []
        async for log in self._logs():
            cleanable = self._cleanable(log, now_ms)
            if cleanable is None:
                continue
            max_dirty_ratio = max(max_dirty_ratio, cleanable.dirty_ratio)
            max_overdue_ms = max(max_overdue_ms, cleanable.overdue_ms)
            if cleanable.is_due(log.config):
                due.append((cleanable.dirty_ratio, log))
        self.max_dirty_ratio, self.max_overdue_ms = max_dirty_ratio, max_overdue_ms
        if not due:
            return None
        _, filthiest = max(due, key=lambda entry: entry[0])
        cleanable = self._cleanable(filthiest, now_ms)  # again: the log may have changed during a pause
        return None if cleanable is None or not cleanable.is_due(filthiest.config) else (filthiest, cleanable)

    async def _logs(self) -> AsyncIterator[PartitionLog]:
        """Yield all logs, and let the event loop continue in between."""
        for number, log in enumerate(list(self._log_manager.logs.values()), 1):
            yield log
            if number % LOOKED_AT_COUNT == 0:
                await asyncio.sleep(0)

    def _cleanable(self, log: PartitionLog, now_ms: int) -> LogToClean | None:
        """Return what can be compacted in a log; None if it cannot be compacted now."""
        if not log.config.is_compacted or len(log.segments) == 1 or not self._may_clean(log):
            return None
        try:
            return cleanable_of(log, now_ms)
        except (OSError, KafkaError) as error:
            self._mark_uncleanable(log, error)
            return None

    def _may_clean(self, log: PartitionLog) -> bool:
        tp = log.topic_partition
        is_uncleanable = tp in self._uncleanable and self._uncleanable[tp].log is log
        is_moving = self._log_manager.future_directory_of(tp) is not None
        is_in_use = self._log_manager.get(tp) is log and log.failure is None
        return is_in_use and log not in self._under_way and not is_uncleanable and not is_moving

    # Cleaning

    async def _clean_if_possible(self, log: PartitionLog, cleanable: LogToClean) -> None:
        try:
            await self.clean(log, cleanable)
        except Interrupted:
            _log.debug("compaction interrupted", partition=str(log.topic_partition))
        except FileNotFoundError as error:
            if not all(segment.path.exists() for segment in log.segments):
                self._mark_uncleanable(log, error)  # else retention has deleted a segment
        except OSError as error:
            if error.errno in NO_SPACE:
                self._mark_uncleanable(log, error)
            else:
                self.failures_count += 1
                log.take_offline(error)
        except Exception as error:  # the same log would fail again at every check
            self._mark_uncleanable(log, error)

    def _mark_uncleanable(self, log: PartitionLog, error: Exception) -> None:
        self.failures_count += 1
        if log.failure is None:
            why = str(error) or repr(error)
            self._uncleanable[log.topic_partition] = Uncleanable(log, why)
            _log.error("cannot compact a log", partition=str(log.topic_partition), why=why)

    async def clean(self, log: PartitionLog, cleanable: LogToClean) -> None:
        """Compact a log once, until the key table is full.

        :raises OSError: When the disk fails.
        :raises KafkaError: CORRUPT_MESSAGE for damage, KAFKA_STORAGE_ERROR.
        """
        began_ms = self._clock.monotonic_ms()
        work = LogWork(log, log.rewrites_count)
        plan, settings = plan_pass(log, cleanable, self._clock.wall_ms()), self.settings
        share_bytes = settings.dedupe_buffer_bytes // max(settings.threads_count, 1)
        offset_map = await self._worker.in_thread(  # a large table takes a while
            offset_map_of_size, share_bytes, settings.load_factor, plan.offsets_count
        )
        cleaning = Cleaner(plan, offset_map, settings.step_bytes)
        await self._worker.drive(work, cleaning.build_offset_map())
        for group in group_segments(cleaning.sources, plan.config):
            cleaned = await self._worker.drive(work, cleaning.clean_segments(group))
            files = self._worker.swap(work, [source.segment for source in group], cleaned)
            await self._worker.in_thread(disk.sync_path, log.directory)
            self.on_replaced(log, files)
        if not self._worker.should_continue(work):
            raise Interrupted
        log.cleaner_offset = cleaning.end_offset
        home = self._log_manager.directory_of(log.topic_partition)
        await self._worker.in_thread(self._log_manager.checkpoint, home)
        self.last_table_use = len(offset_map) * offset_map.entry_bytes / share_bytes
        self._count(log, cleaning, began_ms)

    def _count(self, log: PartitionLog, cleaning: Cleaner, began_ms: int) -> None:
        self.cleaned_count += 1
        self.read_bytes += cleaning.read_bytes
        self.written_bytes += cleaning.written_bytes
        self._last_cleaned_ms = self._clock.monotonic_ms()
        self.last_clean_ms = self._last_cleaned_ms - began_ms
        _log.info(
            "compacted a log",
            partition=str(log.topic_partition),
            end_offset=cleaning.end_offset,
            read_bytes=cleaning.read_bytes,
            written_bytes=cleaning.written_bytes,
            read_records=cleaning.read_records_count,
            kept_records=cleaning.kept_records_count,
            took_ms=self.last_clean_ms,
        )

    # Statistics

    @property
    def uncleanable(self) -> list[Uncleanable]:
        """The logs in use that could not be compacted."""
        logs = self._log_manager.logs
        return [entry for name, entry in self._uncleanable.items() if logs.get(name) is entry.log]

    @property
    def idle_ms(self) -> int:
        """Time since the last pass ended, or since the cleaner was created."""
        return self._clock.monotonic_ms() - self._last_cleaned_ms

    @property
    def time_since_last_check_ms(self) -> int:
        """Time since the last check of all logs; grows when the cleaner is stuck."""
        return self._clock.monotonic_ms() - self._last_checked_ms

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.CLEANER_READ, lambda: [({}, self.read_bytes)])
        registry.add_metric(names.CLEANER_WRITTEN, lambda: [({}, self.written_bytes)])
        registry.add_metric(names.CLEANER_MAX_DIRTY, lambda: [({}, 100 * self.max_dirty_ratio)])
        registry.add_metric(names.CLEANER_LAST_CLEAN, lambda: [({}, self.last_clean_ms / 1000)])
        registry.add_metric(names.CLEANER_IDLE, lambda: [({}, self.idle_ms / 1000)])
        registry.add_metric(names.CLEANER_LAST_LOOK, lambda: [({}, self.time_since_last_check_ms / 1000)])
        registry.add_metric(names.CLEANER_MAX_OVERDUE, lambda: [({}, self.max_overdue_ms / 1000)])
        registry.add_metric(names.CLEANER_TABLE_USE, lambda: [({}, 100 * self.last_table_use)])
        registry.add_metric(names.CLEANER_COMPACTED, lambda: [({}, self.cleaned_count)])
        registry.add_metric(names.CLEANER_FAILURES, lambda: [({}, self.failures_count)])
        registry.add_metric(names.CLEANER_UNCLEANABLE, lambda: [({}, len(self.uncleanable))])
        registry.add_metric(
            names.CLEANER_UNCLEANABLE_BYTES,
            lambda: [({}, sum(uncleanable.log.size_bytes for uncleanable in self.uncleanable))],
        )

    def statistics(self) -> dict[str, object]:
        """Return counts, current passes, and the logs that could not be compacted."""
        return {
            "cleaned_count": self.cleaned_count,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "failures_count": self.failures_count,
            "max_dirty_ratio": self.max_dirty_ratio,
            "max_overdue_ms": self.max_overdue_ms,
            "last_clean_ms": self.last_clean_ms,
            "last_table_use": self.last_table_use,
            "running": [str(log.topic_partition) for log in self._under_way],
            "uncleanable": {str(entry.log.topic_partition): entry.why for entry in self.uncleanable},
        }


def cleanable_of(log: PartitionLog, now_ms: int) -> LogToClean:
    """Return what can be compacted in a log."""
    bounds = LogBounds(
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        active_offset=log.segments.active.base_offset,
        cleaner_offset=log.cleaner_offset,
    )
    return decide_cleanable(log.segments.rolled, bounds, log.config, now_ms)


def plan_pass(log: PartitionLog, cleanable: LogToClean, now_ms: int) -> CleaningPlan:
    """Return the plan of a pass over a log that begins now."""
    sources = []
    for index, segment in enumerate(log.segments.rolled):
        if segment.base_offset < cleanable.first_uncleanable_offset:
            end_offset = log.segments[index + 1].base_offset
            source = Source(
                segment, segment.base_offset, end_offset, segment.size_bytes, index_bytes_of(segment)
            )
            sources.append(source)
    bound = cleanable.first_uncleanable_offset
    aborted = [
        entry
        for segment in log.segments
        for entry in segment.transaction_index.entries
        if entry.first_offset < bound
    ]
    return CleaningPlan(
        log.directory,
        sources,
        cleanable.first_dirty_offset,
        bound,
        log.config,
        last_records(log.producers.states.entries),
        aborted,
        now_ms,
    )


def index_bytes_of(segment: Segment) -> int:
    """Return the size of the larger index on disk."""
    paths = [
        offset_file(segment.directory, segment.base_offset, kind)
        for kind in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
    ]
    return max((path.stat().st_size for path in paths if path.exists()), default=0)
