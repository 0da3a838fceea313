"""Bytes and records of batches by day, from their headers alone."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta

import numpy as np

from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange
from barnabas.reports.usage.statistics import PartDay
from barnabas.wire.records.arrow_fields import Numbers
from barnabas.wire.records.batch import CONTROL_BIT, NO_TIMESTAMP
from barnabas.wire.records.batches_numba import ATTRIBUTES, START
from barnabas.wire.records.walk import BASE_OFFSET, END, LAST_DELTA, MAX_MS, RECORDS_COUNT

_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
_DAY_MIN, _DAY_MAX = (date.min - _EPOCH).days, (date.max - _EPOCH).days
#: Counted for batches without a timestamp, or with one beyond the calendar.
_NO_DAY = _DAY_MIN - 1


class DayCounts:
    """Bytes and records of partitions by the day of each batch's latest record."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[TopicPartition, int], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, offset_range: OffsetRange, batches: Numbers) -> None:
        """Count the batches that begin in the range.

        :param batches: Rows of `batches_numba.read_batches`.
        """

        bases = batches[:, BASE_OFFSET]
        chosen = batches[(bases >= offset_range.low) & (bases < offset_range.high)]
        is_control = chosen[:, ATTRIBUTES] & CONTROL_BIT != 0
        records = np.where(is_control, 0, chosen[:, RECORDS_COUNT])
        sizes = chosen[:, END] - chosen[:, START]
        days, indexes = np.unique(_days(chosen[:, MAX_MS]), return_inverse=True)
        for number, day in enumerate(days.tolist()):
            sums = self._sums[offset_range.tp, day]
            sums[0] += int(sizes[indexes == number].sum())
            sums[1] += int(records[indexes == number].sum())

    def rows(self) -> tuple[PartDay, ...]:
        return tuple(sorted(PartDay(*tp, _text(day), *sums) for (tp, day), sums in self._sums.items()))


def next_offset(batches: Numbers) -> int:
    """Return the offset behind the last batch."""
    return int(batches[-1, BASE_OFFSET] + batches[-1, LAST_DELTA]) + 1


def _days(times_ms: Numbers) -> Numbers:
    days = times_ms // _DAY_MS
    outside = (times_ms == NO_TIMESTAMP) | (days < _DAY_MIN) | (days > _DAY_MAX)
    return np.where(outside, _NO_DAY, days)


def _text(day: int) -> str:
    return "" if day == _NO_DAY else (_EPOCH + timedelta(days=day)).isoformat()


def records_by_partition(days: Iterable[PartDay]) -> dict[TopicPartition, int]:
    counts: defaultdict[TopicPartition, int] = defaultdict(int)
    for day in days:
        counts[TopicPartition(day.topic, day.partition)] += day.records_count
    return dict(counts)
