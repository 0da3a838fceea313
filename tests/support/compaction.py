"""Compaction of a log in one go, and what is left of it."""

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

#: Room and speed for whatever a test compacts.
CLEANER_SETTINGS = CleanerSettings(
    threads_count=1,
    backoff_ms=1,
    dedupe_buffer_bytes=1 << 20,
    load_factor=0.9,
    io_buffer_bytes=1 << 20,
    bytes_per_second=1e300,
)


def finish(steps: Generator[int, None, ResultT]) -> ResultT:
    """Take all steps; gives what the last returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: ResultT = end.value
            return result


def written_anew(
    log: PartitionLog,
    now_ms: int,
    *,
    keys_count_max: int = 1_000,
    step_bytes: int = 4_096,
    make_map: Callable[[int], OffsetMap] = PlainOffsetMap,
) -> tuple[Cleaner, list[tuple[list[Segment], Segment]]]:
    """A pass without its end: what is to be replaced, and by what."""
    plan = plan_pass(log, cleanable_of(log, now_ms), now_ms)
    cleaning = Cleaner(plan, make_map(keys_count_max), step_bytes)
    finish(cleaning.build_offset_map())
    groups = group_segments(cleaning.sources, plan.config)
    return cleaning, [
        ([each.segment for each in group], finish(cleaning.clean_segments(group))) for group in groups
    ]


def compact(log: PartitionLog, now_ms: int, **options: Any) -> Cleaner:
    """One pass, as the cleaner does it."""
    cleaning, swaps = written_anew(log, now_ms, **options)
    for old, new in swaps:
        unlink_files(log.replace_segments(old, new))
    log.cleaner_offset = cleaning.end_offset
    return cleaning


def copy_logs(source: Path, target: Path, partitions: Iterable[TopicPartition]) -> None:
    """Copy the logs of a broker, to which nobody writes meanwhile, as if it had been stopped."""
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
    """The logs in a directory, after one pass of the broker's cleaner over each at its moment."""
    clock = ManualClock()
    directories = LogManager.open([data], cluster_id="c", node_id=1, clock=clock, random=Random(0))
    try:
        directories.load(lambda topic: config)
        asyncio.run(_clean(directories, clock, moments))
        yield directories.logs
    finally:
        directories.close()


async def _clean(directories: LogManager, clock: ManualClock, moments: Mapping[TopicPartition, int]) -> None:
    worker = LogWorker(directories, clock, lambda: CLEANER_SETTINGS.bytes_per_second)
    cleaner = LogCleaner(directories, clock, lambda: CLEANER_SETTINGS, worker)
    try:
        for tp, now_ms in moments.items():
            clock.now_ms, log = now_ms, directories.logs[tp]
            log.update_high_watermark(log.log_end_offset)
            await cleaner.clean_segments(log, cleanable_of(log, now_ms))
    finally:
        await cleaner.stop()
        worker.close()


def files_of(directory: Path, base_offset: int, suffix: str = "") -> dict[str, bytes]:
    """The files of a segment by their kinds."""
    paths = {kind: offset_file(directory, base_offset, kind + suffix) for kind in SEGMENT_SUFFIXES}
    return {kind: path.read_bytes() for kind, path in paths.items() if path.exists()}


def batches_of(log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    """Every batch on the disk, those below the log's start included."""
    return [
        (header, decode_batch(segment.view(position, header.size_bytes), 0, header))
        for segment in log.segments
        for position, header in segment.headers()
    ]


def records_of(log: PartitionLog) -> list[Record]:
    """Every record of data on the disk."""
    return [record for header, records in batches_of(log) if not header.is_control for record in records]


def offsets_of(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(log)]


def parts_of(log: PartitionLog, now_ms: int, replacement: Path) -> tuple[ImportedSegment, ...]:
    """What a pass leaves, written to files in `replacement` as somebody beside the broker would."""
    parts = []
    for old, new in written_anew(log, now_ms)[1]:
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
