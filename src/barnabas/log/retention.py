"""Decides which segments of a log retention deletes, as a pure function."""

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.log.log_config import LogConfig


class Candidate(Protocol):
    """The facts about a segment that retention needs."""

    base_offset: int
    size_bytes: int

    def largest_timestamp_ms(self) -> int:
        """Return the largest timestamp, or when the segment was last written if no record has one."""
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
    """Return how many of the oldest segments to delete; never one above the high watermark.

    The three reasons are applied in Kafka's order: below the log start offset, excess size, age.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]

    def count_deletable(first: int, is_deletable: Callable[[int], bool]) -> int:
        index = first
        while index < len(segments) and ends[index] <= high_watermark and is_deletable(index):
            if index == len(segments) - 1 and segments[index].size_bytes == 0:
                break
            index += 1
        return index

    count = count_deletable(0, lambda index: index + 1 < len(segments) and ends[index] <= log_start_offset)
    if not config.is_deleted:
        return count
    if config.retention_bytes >= 0:
        excess_bytes = sum(segment.size_bytes for segment in segments[count:]) - config.retention_bytes
        remaining = excess_after(segments, excess_bytes, count)
        count = count_deletable(count, lambda index: remaining[index] >= 0)
    if config.retention_ms >= 0:
        count = count_deletable(
            count, lambda index: now_ms - segments[index].largest_timestamp_ms() > config.retention_ms
        )
    return count


def excess_after(segments: Sequence[Candidate], excess_bytes: int, first: int) -> list[int]:
    """Return by segment the bytes above the limit that remain if all from `first` up to it are deleted."""
    remaining = [0] * first
    for segment in segments[first:]:
        excess_bytes -= segment.size_bytes
        remaining.append(excess_bytes)
    return remaining
