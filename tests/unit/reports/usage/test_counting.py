"""Days of batches, from their headers."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange
from barnabas.reports.usage.counting import DayCounts, next_offset, records_by_partition
from barnabas.reports.usage.statistics import PartDay
from barnabas.wire.records.batches_numba import read_batches
from support.batches import batch

TP = TopicPartition("orders", 0)
DAY_MS = 86_400_000


def counted(*batches: memoryview, low: int = 0, high: int = 100) -> tuple[PartDay, ...]:
    days = DayCounts()
    days.add(OffsetRange(TP, low, high), read_batches(b"".join(batches)))
    return days.rows()


def test_a_batch_counts_for_the_day_of_its_latest_record() -> None:
    first, second = batch(b"a", b"b", timestamp_ms=DAY_MS - 1), batch(b"c", timestamp_ms=DAY_MS)
    assert counted(first, first, second) == (
        PartDay("orders", 0, "1970-01-01", 2 * len(first), 4),
        PartDay("orders", 0, "1970-01-02", len(second), 1),
    )


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 60, -(1 << 60)])
def test_a_batch_without_a_day_in_the_calendar_has_an_empty_date(timestamp_ms: int) -> None:
    assert [row.date for row in counted(batch(b"a", timestamp_ms=timestamp_ms))] == [""]


def test_a_batch_belongs_to_the_range_with_its_first_offset() -> None:
    batches = batch(b"a", b"b", base_offset=5), batch(b"c", base_offset=7)
    assert [row.records_count for row in counted(*batches, low=6)] == [1]
    assert [row.records_count for row in counted(*batches, high=7)] == [2]
    assert next_offset(read_batches(b"".join(batches))) == 8


def test_partitions_are_summed_over_days() -> None:
    rows = counted(batch(b"a", timestamp_ms=0), batch(b"b", timestamp_ms=DAY_MS))
    assert records_by_partition(rows) == {TP: 2}
