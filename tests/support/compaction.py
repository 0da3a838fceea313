"""Compaction of a log in one go, and what is left of it."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

from barnabas.log.cleanable import group_segments
from barnabas.log.cleaner import cleanable_of, plan_pass
from barnabas.log.cleaning import Cleaning, discard
from barnabas.log.files import unlink_files
from barnabas.log.offset_map import OffsetMap, PlainOffsetMap
from barnabas.log.partition_log import PartitionLog
from barnabas.log.replacement import Part, Replaced, digest_of
from barnabas.log.segment import Segment
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.record import Record, decode_batch

ResultT = TypeVar("ResultT")


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
) -> tuple[Cleaning, list[tuple[list[Segment], Segment]]]:
    """A pass without its end: what is to be replaced, and by what."""
    plan = plan_pass(log, cleanable_of(log, now_ms), now_ms)
    cleaning = Cleaning(plan, make_map(keys_count_max), step_bytes)
    finish(cleaning.index())
    groups = group_segments(cleaning.sources, plan.config)
    return cleaning, [([each.segment for each in group], finish(cleaning.clean(group))) for group in groups]


def compact(log: PartitionLog, now_ms: int, **options: Any) -> Cleaning:
    """One pass, as the cleaner does it."""
    cleaning, swaps = written_anew(log, now_ms, **options)
    for old, new in swaps:
        unlink_files(log.replace_segments(old, new))
    log.cleaner_offset = cleaning.end_offset
    return cleaning


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


def parts_of(log: PartitionLog, now_ms: int, replacement: Path) -> tuple[Part, ...]:
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
        parts.append(Part(file.name, new.base_offset, ends[0], new.size_bytes, digest, replaced, aborted))
        discard(new)
    return tuple(parts)
