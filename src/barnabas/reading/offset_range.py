"""Offsets of a partition to read."""

from typing import NamedTuple

from barnabas.base.ids import TopicPartition


class OffsetRange(NamedTuple):
    """The records of a partition with low <= offset < high."""

    tp: TopicPartition
    low: int
    high: int

    @property
    def offsets_count(self) -> int:
        """Number of offsets; there may be fewer records."""
        return self.high - self.low


class PlannedRange(NamedTuple):
    """A range, its topic id, and the approximate log bytes per offset."""

    range: OffsetRange
    topic_id: bytes
    record_bytes: float
