"""What of a log may be compacted, how much it needs it, and which log comes first: pure decisions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from barnabas.log.log_config import FOREVER, LogConfig

#: Offsets in the indexes of a segment are relative, in 31 bits.
_OFFSET_RANGE_MAX = (1 << 31) - 1


class RolledSegment(Protocol):
    """What compaction must know of a segment that is not written to any more."""

    base_offset: int
    size_bytes: int

    def largest_timestamp_ms(self) -> int:
        """The largest timestamp, or when the segment was last written."""
        ...

    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch; -1 without one."""
        ...


class LogBounds(NamedTuple):
    """The offsets of a log that bound what may be compacted."""

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    #: Base offset of the active segment.
    active_offset: int
    #: Everything before was compacted once.
    cleaner_offset: int


class LogToClean(NamedTuple):
    """What there is to compact in a log."""

    first_dirty_offset: int
    #: Base offset of a segment, the active one at most.
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    #: For how long `max.compaction.lag.ms` has passed for a record that was never compacted.
    overdue_ms: int

    @property
    def dirty_ratio(self) -> float:
        """Which share of what can be compacted was never compacted."""
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Whether it is worth the work, or must be done."""
        if self.overdue_ms > 0 and self.dirty_bytes > 0:
            return True
        return self.dirty_ratio > config.min_cleanable_dirty_ratio


def decide_cleanable(
    segments: Sequence[RolledSegment], bounds: LogBounds, config: LogConfig, now_ms: int
) -> LogToClean:
    """What of `segments`, all but the active one, may be compacted.

    Not what a transaction or a replica may still take back, nor what is younger than `min.compaction.lag.ms`.
    """
    first_dirty = bounds.cleaner_offset
    if not bounds.log_start_offset <= first_dirty <= bounds.log_end_offset:
        first_dirty = bounds.log_start_offset
    dirty = _from(segments, first_dirty, bounds.active_offset)
    limit = min(bounds.last_stable_offset, bounds.active_offset)
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        young = (each.base_offset for each in dirty if each.largest_timestamp_ms() > youngest_ms)
        limit = min(limit, next(young, limit))
    beyond = _from(segments, max(limit, first_dirty), bounds.active_offset)
    uncleanable = beyond[0].base_offset if beyond else bounds.active_offset
    return LogToClean(
        first_dirty,
        uncleanable,
        clean_bytes=sum(each.size_bytes for each in segments if each.base_offset < first_dirty),
        dirty_bytes=sum(each.size_bytes for each in dirty if each.base_offset < uncleanable),
        overdue_ms=_overdue_ms(dirty, config, now_ms),
    )


def _from(segments: Sequence[RolledSegment], offset: int, end_offset: int) -> Sequence[RolledSegment]:
    """The segment in whose range `offset` lies, and all that follow; none from `end_offset` on."""
    if offset >= end_offset:
        return ()
    below = sum(each.base_offset <= offset for each in segments)
    return segments[max(below - 1, 0) :]


def _overdue_ms(dirty: Sequence[RolledSegment], config: LogConfig, now_ms: int) -> int:
    if config.max_compaction_lag_ms == FOREVER:
        return 0
    firsts = (each.first_timestamp_ms() for each in dirty)
    earliest_ms = min((first_ms for first_ms in firsts if first_ms > 0), default=FOREVER)
    return max(now_ms - config.max_compaction_lag_ms - earliest_ms, 0)


class CleanableSegment(Protocol):
    """What of a segment decides with which others it is joined."""

    @property
    def base_offset(self) -> int:
        """Where it begins."""
        ...

    @property
    def end_offset(self) -> int:
        """Where the next one begins."""
        ...

    @property
    def size_bytes(self) -> int:
        """Of its batches."""
        ...

    @property
    def index_bytes(self) -> int:
        """Of the larger of its indexes."""
        ...


SizedT = TypeVar("SizedT", bound=CleanableSegment)


def group_segments(segments: Iterable[SizedT], config: LogConfig) -> list[list[SizedT]]:
    """Neighbours that together make one segment of at most `segment.bytes` even if nothing of them goes."""
    groups: list[list[SizedT]] = []
    for segment in segments:
        if groups and _fits(groups[-1], segment, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(group: Sequence[CleanableSegment], segment: CleanableSegment, config: LogConfig) -> bool:
    size_bytes = sum(each.size_bytes for each in group) + segment.size_bytes
    index_bytes = sum(each.index_bytes for each in group) + segment.index_bytes
    return (
        size_bytes <= config.segment_bytes
        and index_bytes <= config.segment_index_bytes
        and (segment.size_bytes == 0 or segment.end_offset - 1 - group[0].base_offset <= _OFFSET_RANGE_MAX)
    )
