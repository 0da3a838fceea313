"""Ranges of offsets into tasks of even size, each large enough to be worth a task. No IO."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.ids import TopicPartition

#: What a record is taken to need in the log while nothing is known of its partition.
RECORD_BYTES_DEFAULT = 1_024.0
_RECORD_BYTES_MIN = 1 / 1_024
#: A small record costs as much as one of so many bytes: each becomes a row. They may be small as they are packed.
_ROW_BYTES = 256.0
#: They may also be few, where most offsets are gone: so many times its bytes is the most that an offset counts.
_ROW_TIMES_MAX = 16
#: From here on two tasks are nearer to the size that is wanted than one.
_SHARES_OF_TWO = 1.5


class OffsetRange(NamedTuple):
    """The records of a partition with low <= offset < high."""

    tp: TopicPartition
    low: int
    high: int

    @property
    def offsets_count(self) -> int:
        """How many offsets; records may be fewer."""
        return self.high - self.low


#: Ranges that one task reads one after the other.
Task = tuple[OffsetRange, ...]


@dataclass(frozen=True)
class TaskLimits:
    """How large a task is wanted, unless there must be more tasks, or smaller ones.

    Of several tasks each is three quarters of `bytes_wanted` at least; a small record counts as one of 256 bytes.
    """

    bytes_wanted: int
    tasks_min: int | None = None
    records_max: int | None = None


def plan_tasks(
    ranges: Iterable[OffsetRange], record_bytes: Mapping[TopicPartition, float], limits: TaskLimits
) -> list[Task]:
    """Deal out all ranges in the order of their partitions; cuts may lie at any offset.

    `record_bytes` is what an offset of a partition takes of the log, on average.
    """
    wanted = sorted(each for each in ranges if each.offsets_count > 0)
    weights = {each.tp: _weight(record_bytes.get(each.tp, RECORD_BYTES_DEFAULT)) for each in wanted}
    total_bytes = sum(each.offsets_count * weights[each.tp] for each in wanted)
    offsets_count = sum(each.offsets_count for each in wanted)
    tasks_count = max(_count_of(total_bytes / limits.bytes_wanted), min(limits.tasks_min or 1, offsets_count))
    dealer = _Dealer(total_bytes / tasks_count, limits.records_max)
    for each in wanted:
        dealer.deal(each, weights[each.tp])
    return dealer.finish()


def _weight(record_bytes: float) -> float:
    """What an offset counts, in bytes."""
    return max(record_bytes, min(_ROW_BYTES, _ROW_TIMES_MAX * record_bytes), _RECORD_BYTES_MIN)


def _count_of(shares: float) -> int:
    """How many tasks for so many times the size of one: cores come in even numbers, and wait for the odd task."""
    return 1 if shares < _SHARES_OF_TWO else max(2, 2 * math.floor(shares / 2))


class _Dealer:
    """Fills one task after the other; what one takes too much, the next has less room for."""

    def __init__(self, task_bytes: float, records_max: int | None) -> None:
        self._task_bytes = task_bytes
        self._records_max = math.inf if records_max is None else records_max
        self._tasks: list[Task] = []
        self._task: list[OffsetRange] = []
        self._room_bytes = task_bytes
        self._room_records = self._records_max

    def deal(self, whole: OffsetRange, record_bytes: float) -> None:
        """Put a range into this task and, as far as it does not fit, into those that follow."""
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

    def finish(self) -> list[Task]:
        """All tasks."""
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
    """Nearer ends, so that about `limit` offsets lie before them: each partition by its share of what is new.

    No partition is left out while it has something new, so that small ones do not starve.
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
