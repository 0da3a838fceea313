"""Run a compaction to its end, and read what is left of the log."""

import asyncio
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction.cleaner import CleanerSettings, LogCleaner, cleanable_of, plan_pass
from barnabas.log.compaction.cleaning_pass import Cleaner, discard
from barnabas.log.compaction.log_to_clean import group_segments
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.compaction.offset_map import OffsetMap, PlainOffsetMap
from barnabas.log.files import DELETED_SUFFIX, SEGMENT_SUFFIXES, offset_file, unlink_files
from barnabas.log.imports.manifest import ImportedSegment, Replaced, digest_of
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import CLEAN_SHUTDOWN_FILE
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segment import Segment
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.record import Record, decode_batch

ResultT = TypeVar("ResultT")

#: A map size and rate that no test reaches.
CLEANER_SETTINGS = CleanerSettings(
    threads_count=1,
    backoff_ms=1,
    dedupe_buffer_bytes=1 << 20,
    load_factor=0.9,
    io_buffer_bytes=1 << 20,
    bytes_per_second=1e300,
)


def finish(steps: Generator[int, None, ResultT]) -> ResultT:
    """Exhaust an iterator of steps, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: ResultT = end.value
            return result


def rewritten_segments(
    log: PartitionLog,
    now_ms: int,
    *,
    keys_count_max: int = 1_000,
    step_bytes: int = 4_096,
    make_map: Callable[[int], OffsetMap] = PlainOffsetMap,
) -> tuple[Cleaner, list[tuple[list[Segment], Segment]]]:
    """Run a pass up to its replacement of segments; return the old segments and the new one."""
    plan = plan_pass(log, cleanable_of(log, now_ms), now_ms)
    cleaning = Cleaner(plan, make_map(keys_count_max), step_bytes)
    finish(cleaning.build_offset_map())
    groups = group_segments(cleaning.sources, plan.config)
    return cleaning, [
        ([each.segment for each in group], finish(cleaning.clean_segments(group))) for group in groups
    ]


def compact(log: PartitionLog, now_ms: int, **options: Any) -> Cleaner:
    """Run one pass, as the cleaner does."""
    cleaning, swaps = rewritten_segments(log, now_ms, **options)
    for old, new in swaps:
        unlink_files(log.replace_segments(old, new))
    log.cleaner_offset = cleaning.end_offset
    return cleaning


def copy_logs(source: Path, target: Path, partitions: Iterable[TopicPartition]) -> None:
    """Copy the logs of a broker that receives no writes, as if it had been stopped."""
    for tp in partitions:
        left_out = shutil.ignore_patterns(f"*{DELETED_SUFFIX}")
        shutil.copytree(source / str(tp), target / str(tp), ignore=left_out)
    for path in source.glob("*-checkpoint"):
        shutil.copy(path, target)
    (target / CLEAN_SHUTDOWN_FILE).touch()


@contextmanager
def cleaned_by_broker(
    data: Path, config: LogConfig, moments: Mapping[TopicPartition, int]
) -> Iterator[Mapping[TopicPartition, PartitionLog]]:
    """Return the logs in a directory after one pass of the broker's cleaner over each, at its time."""
    clock = ManualClock()
    log_manager = LogManager.open([data], cluster_id="c", node_id=1, clock=clock, random=Random(0))
    try:
        log_manager.load(lambda topic: config)
        asyncio.run(_clean(log_manager, clock, moments))
        yield log_manager.logs
    finally:
        log_manager.close()


async def _clean(log_manager: LogManager, clock: ManualClock, moments: Mapping[TopicPartition, int]) -> None:
    worker = LogWorker(log_manager, clock, lambda: CLEANER_SETTINGS.bytes_per_second)
    cleaner = LogCleaner(log_manager, clock, lambda: CLEANER_SETTINGS, worker)
    try:
        for tp, now_ms in moments.items():
            clock.now_ms, log = now_ms, log_manager.logs[tp]
            log.update_high_watermark(log.log_end_offset)
            await cleaner.clean(log, cleanable_of(log, now_ms))
    finally:
        await cleaner.stop()
        worker.close()


def files_of(directory: Path, base_offset: int, suffix: str = "") -> dict[str, bytes]:
    """Return the files of a segment by kind."""
    paths = {kind: offset_file(directory, base_offset, kind + suffix) for kind in SEGMENT_SUFFIXES}
    return {kind: path.read_bytes() for kind, path in paths.items() if path.exists()}


def batches_of(log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    """Return every batch on disk, including those below the log start offset."""
    return [
        (header, decode_batch(segment.view(position, header.size_bytes), 0, header))
        for segment in log.segments
        for position, header in segment.headers()
    ]


def records_of(log: PartitionLog) -> list[Record]:
    """Return every data record on disk."""
    return [record for header, records in batches_of(log) if not header.is_control for record in records]


def offsets_of(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(log)]


def parts_of(log: PartitionLog, now_ms: int, replacement: Path) -> tuple[ImportedSegment, ...]:
    """Return the result of a pass, written to files in `replacement` as a job outside the broker does."""
    parts = []
    for old, new in rewritten_segments(log, now_ms)[1]:
        file = replacement / f"{new.base_offset}.part"
        file.write_bytes(new.path.read_bytes())
        aborted = tuple(new.transaction_index.entries)
        ends = [each.base_offset for each in log.segments if each.base_offset > old[-1].base_offset]
        replaced = tuple(
            Replaced(each.base_offset, each.size_bytes, digest_of(each.path, each.size_bytes)) for each in old
        )
        digest = digest_of(file, new.size_bytes)
        parts.append(
            ImportedSegment(file.name, new.base_offset, ends[0], new.size_bytes, digest, replaced, aborted)
        )
        discard(new)
    return tuple(parts)
