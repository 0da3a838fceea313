"""Splits ranges of offsets into tasks of even size, each large enough to pay off. No IO."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange

#: Assumed log bytes per record while nothing is known about a partition.
RECORD_BYTES_DEFAULT = 1_024.0
_RECORD_BYTES_MIN = 1 / 1_024
#: The minimum weight of a record, because each becomes a row. Compressed records may have fewer bytes.
_ROW_BYTES = 256.0
#: The maximum weight of an offset, as a multiple of its bytes, for logs with few records left.
_ROW_TIMES_MAX = 16
#: From this ratio on two tasks are closer to the wanted size than one.
_TWO_TASKS_FROM = 1.5


#: Ranges that one task reads one after the other.
TaskRanges = tuple[OffsetRange, ...]


@dataclass(frozen=True)
class TaskLimits:
    """How many tasks there are: one for each partition, unless one of these limits requires more or fewer.

    A task of a large partition has at least three quarters of `bytes_wanted`; a small record counts as 256 bytes.
    """

    bytes_wanted: int
    tasks_min: int | None = None
    records_max: int | None = None
    slots_count: int | None = (
        None  #: tasks that run at a time; small partitions share tasks if there are more
    )


def split_ranges(
    ranges: Iterable[OffsetRange], record_bytes: Mapping[TopicPartition, float], limits: TaskLimits
) -> list[TaskRanges]:
    """Distribute all ranges in the order of their partitions.

    `record_bytes` is the average log bytes per offset of a partition.
    """
    non_empty = sorted(offset_range for offset_range in ranges if offset_range.offsets_count > 0)
    weights = {
        offset_range.tp: _weight(record_bytes.get(offset_range.tp, RECORD_BYTES_DEFAULT))
        for offset_range in non_empty
    }
    if limits.tasks_min is not None and limits.tasks_min > len(non_empty):
        return _split_evenly(non_empty, weights, limits, limits.tasks_min)
    return _split_by_partition(non_empty, weights, limits)


def _split_evenly(
    ranges: Sequence[OffsetRange],
    weights: Mapping[TopicPartition, float],
    limits: TaskLimits,
    tasks_min: int,
) -> list[TaskRanges]:
    """Cut the ranges into at least `tasks_min` tasks, as far as there are offsets; a range may be cut anywhere."""
    total_bytes = sum(each.offsets_count * weights[each.tp] for each in ranges)
    offsets_count = sum(each.offsets_count for each in ranges)
    tasks_count = max(_count_of(total_bytes / limits.bytes_wanted), min(tasks_min, offsets_count))
    filler = _TaskFiller(total_bytes / tasks_count, limits.records_max)
    for each in ranges:
        filler.add(each, weights[each.tp])
    return filler.finish()


def _split_by_partition(
    ranges: Sequence[OffsetRange], weights: Mapping[TopicPartition, float], limits: TaskLimits
) -> list[TaskRanges]:
    """Give each range tasks of its own, or let whole ranges share tasks if there are more than slots."""
    pieces: list[OffsetRange] = []
    for each in ranges:
        range_bytes = each.offsets_count * weights[each.tp]
        filler = _TaskFiller(range_bytes / _count_of(range_bytes / limits.bytes_wanted), limits.records_max)
        filler.add(each, weights[each.tp])
        pieces += [piece for task in filler.finish() for piece in task]
    if limits.slots_count is None or limits.records_max is not None or len(pieces) <= limits.slots_count:
        return [(piece,) for piece in pieces]
    return _share_tasks(pieces, weights, limits.bytes_wanted, limits.slots_count)


def _share_tasks(
    pieces: Sequence[OffsetRange],
    weights: Mapping[TopicPartition, float],
    bytes_wanted: int,
    slots_count: int,
) -> list[TaskRanges]:
    """Distribute whole pieces in order, each to the task in whose share of all bytes its middle lies."""
    sizes = [piece.offsets_count * weights[piece.tp] for piece in pieces]
    total_bytes = sum(sizes)
    tasks_count = max(slots_count, math.ceil(total_bytes / bytes_wanted))
    tasks: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    before_bytes = 0.0
    for piece, size in zip(pieces, sizes, strict=True):
        middle = (before_bytes + size / 2) / total_bytes
        tasks[min(math.floor(middle * tasks_count), tasks_count - 1)].append(piece)
        before_bytes += size
    return [tuple(task) for task in tasks.values()]


def _weight(record_bytes: float) -> float:
    """Return the weight of an offset, in bytes."""
    return max(record_bytes, min(_ROW_BYTES, _ROW_TIMES_MAX * record_bytes), _RECORD_BYTES_MIN)


def _count_of(shares: float) -> int:
    """Return the number of tasks for a multiple of the task size, rounded down to an even number, as that of cores."""
    return 1 if shares < _TWO_TASKS_FROM else max(2, 2 * math.floor(shares / 2))


class _TaskFiller:
    """Fills tasks one after the other; the excess of one task is subtracted from the next."""

    def __init__(self, task_bytes: float, records_max: int | None) -> None:
        self._task_bytes = task_bytes
        self._records_max = math.inf if records_max is None else records_max
        self._tasks: list[TaskRanges] = []
        self._task: list[OffsetRange] = []
        self._room_bytes = task_bytes
        self._room_records = self._records_max

    def add(self, whole: OffsetRange, record_bytes: float) -> None:
        """Add a range to the current task, and the rest of it to the following ones."""
        low = whole.low
        while low < whole.high:
            fitting = max(1, math.ceil(self._room_bytes / record_bytes - 1e-6))
            count = int(min(whole.high - low, fitting, self._room_records))
            self._task.append(OffsetRange(whole.tp, low, low + count))
            low += count
            self._room_bytes -= count * record_bytes
            self._room_records -= count
            if self._room_records < 1 or self._room_bytes <= self._task_bytes * 1e-6:
                self._close()

    def finish(self) -> list[TaskRanges]:
        if self._task:
            self._close()
        return self._tasks

    def _close(self) -> None:
        self._tasks.append(tuple(self._task))
        self._task = []
        overdrawn_bytes = min(self._room_bytes, 0.0)
        self._room_bytes = self._task_bytes + overdrawn_bytes
        self._room_records = self._records_max


def share_limit(
    limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return ends with about `limit` new offsets in all: each partition has its share of the new offsets.

    Every partition with new offsets gets at least one, so that small ones do not starve.
    """
    sizes = {tp: end - starts[tp] for tp, end in ends.items() if tp in starts}
    total = sum(size for size in sizes.values() if size > 0)
    if total <= limit:
        return dict(ends)
    shared = dict(ends)
    for tp, size in sizes.items():
        if size > 0:
            share = limit * size / total
            shared[tp] = min(ends[tp], starts[tp] + max(1, math.floor(share)))
    return shared
