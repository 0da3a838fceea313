"""Run a compaction to its end, and read what is left of the log."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from barnabas.log.compaction.cleaner import CleanerSettings, cleanable_of, plan_pass
from barnabas.log.compaction.cleaning_pass import Cleaner
from barnabas.log.compaction.log_to_clean import group_segments
from barnabas.log.compaction.offset_map import OffsetMap, PlainOffsetMap
from barnabas.log.files import unlink_files
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
