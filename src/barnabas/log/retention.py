"""Which segments may go: a pure decision on what is known of them."""

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.log.log_config import LogConfig


class Candidate(Protocol):
    """What retention must know of a segment."""

    base_offset: int
    size_bytes: int

    def largest_timestamp_ms(self) -> int:
        """The largest timestamp, or when the segment was last written."""
        ...


def deletable_count(
    segments: Sequence[Candidate],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments retention lets go; never one above the high watermark.

    The three reasons follow each other as in Kafka: before the log's start, beyond its size, too old.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]

    def count_while(first: int, is_due: Callable[[int], bool]) -> int:
        index = first
        while index < len(segments) and ends[index] <= high_watermark and is_due(index):
            if index == len(segments) - 1 and segments[index].size_bytes == 0:
                break
            index += 1
        return index

    count = count_while(0, lambda index: index + 1 < len(segments) and ends[index] <= log_start_offset)
    if not config.is_deleted:
        return count
    if config.retention_bytes >= 0:
        excess_bytes = sum(segment.size_bytes for segment in segments[count:]) - config.retention_bytes
        remaining = excess_after(segments, excess_bytes, count)
        count = count_while(count, lambda index: remaining[index] >= 0)
    if config.retention_ms >= 0:
        count = count_while(
            count, lambda index: now_ms - segments[index].largest_timestamp_ms() > config.retention_ms
        )
    return count


def excess_after(segments: Sequence[Candidate], excess_bytes: int, first: int) -> list[int]:
    """By segment: how much more than allowed would be left if all from `first` up to it were gone."""
    remaining = [0] * first
    for segment in segments[first:]:
        excess_bytes -= segment.size_bytes
        remaining.append(excess_bytes)
    return remaining
