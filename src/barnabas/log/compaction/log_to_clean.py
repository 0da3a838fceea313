"""Decides what to compact in a log, whether compaction is due, and which segments to merge, as pure functions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from barnabas.log.log_config import FOREVER, LogConfig

#: Offsets in the indexes of a segment are relative to its base offset and have 31 bits.
_OFFSET_RANGE_MAX = (1 << 31) - 1


class RolledSegment(Protocol):
    """The facts about a segment other than the active one that compaction needs."""

    base_offset: int
    size_bytes: int

    def largest_timestamp_ms(self) -> int:
        """Return the largest timestamp, or when the segment was last written if no record has one."""
        ...

    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch; -1 if there is none."""
        ...


class LogBounds(NamedTuple):
    """The offsets of a log that limit what may be compacted."""

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    #: Base offset of the active segment.
    active_offset: int
    #: Everything before this offset has been compacted.
    cleaner_offset: int


class LogToClean(NamedTuple):
    """The parts of a log that compaction will read."""

    first_dirty_offset: int
    #: Base offset of a segment, at most of the active one.
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    #: How long ago `max.compaction.lag.ms` has passed for the oldest record that was never compacted.
    overdue_ms: int

    @property
    def dirty_ratio(self) -> float:
        """The fraction of the cleanable bytes that was never compacted."""
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Whether the dirty ratio is high enough, or a record is overdue."""
        if self.overdue_ms > 0 and self.dirty_bytes > 0:
            return True
        return self.dirty_ratio > config.min_cleanable_dirty_ratio


def decide_cleanable(
    segments: Sequence[RolledSegment], bounds: LogBounds, config: LogConfig, now_ms: int
) -> LogToClean:
    """Return what of `segments`, which do not include the active one, may be compacted.

    This excludes offsets from the last stable offset on, and segments younger than `min.compaction.lag.ms`.
    """
    first_dirty = bounds.cleaner_offset
    if not bounds.log_start_offset <= first_dirty <= bounds.log_end_offset:
        first_dirty = bounds.log_start_offset
    dirty = _from(segments, first_dirty, bounds.active_offset)
    limit = min(bounds.last_stable_offset, bounds.active_offset)
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp_ms() > youngest_ms)
        limit = min(limit, next(young, limit))
    beyond = _from(segments, max(limit, first_dirty), bounds.active_offset)
    uncleanable = beyond[0].base_offset if beyond else bounds.active_offset
    return LogToClean(
        first_dirty,
        uncleanable,
        clean_bytes=sum(segment.size_bytes for segment in segments if segment.base_offset < first_dirty),
        dirty_bytes=sum(segment.size_bytes for segment in dirty if segment.base_offset < uncleanable),
        overdue_ms=_overdue_ms(dirty, config, now_ms),
    )


def _from(segments: Sequence[RolledSegment], offset: int, end_offset: int) -> Sequence[RolledSegment]:
    """Return the segment whose range contains `offset`, and all later ones; none from `end_offset` on."""
    if offset >= end_offset:
        return ()
    below = sum(segment.base_offset <= offset for segment in segments)
    return segments[max(below - 1, 0) :]


def _overdue_ms(dirty: Sequence[RolledSegment], config: LogConfig, now_ms: int) -> int:
    if config.max_compaction_lag_ms == FOREVER:
        return 0
    firsts = (segment.first_timestamp_ms() for segment in dirty)
    earliest_ms = min((first_ms for first_ms in firsts if first_ms > 0), default=FOREVER)
    return max(now_ms - config.max_compaction_lag_ms - earliest_ms, 0)


class CleanableSegment(Protocol):
    """The facts that decide which segments are merged."""

    @property
    def base_offset(self) -> int: ...

    @property
    def end_offset(self) -> int:
        """Base offset of the next segment."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of its batches."""
        ...

    @property
    def index_bytes(self) -> int:
        """Size of the larger of its indexes."""
        ...


SizedT = TypeVar("SizedT", bound=CleanableSegment)


def group_segments(segments: Iterable[SizedT], config: LogConfig) -> list[list[SizedT]]:
    """Group neighbours that fit into one segment of at most `segment.bytes` even if compaction removes nothing."""
    groups: list[list[SizedT]] = []
    for segment in segments:
        if groups and _fits(groups[-1], segment, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(group: Sequence[CleanableSegment], segment: CleanableSegment, config: LogConfig) -> bool:
    size_bytes = sum(member.size_bytes for member in group) + segment.size_bytes
    index_bytes = sum(member.index_bytes for member in group) + segment.index_bytes
    return (
        size_bytes <= config.segment_bytes
        and index_bytes <= config.segment_index_bytes
        and (segment.size_bytes == 0 or segment.end_offset - 1 - group[0].base_offset <= _OFFSET_RANGE_MAX)
    )
