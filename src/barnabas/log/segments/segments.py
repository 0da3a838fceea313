"""The segments of one log, ordered by offset."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.log.segments.segment import Segment


class FilePart(NamedTuple):
    """A range of a file to which bytes are only appended."""

    path: Path
    position: int
    size_bytes: int
    #: Whether the range ends at the end of the log.
    is_last: bool


class LogSlice(NamedTuple):
    """Bytes of one segment, starting with a batch; the last batch may be cut off."""

    data: memoryview
    segment_base_offset: int
    position: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)


class Segments:
    """At least one segment; the last one is the active segment, to which appends go."""

    def __init__(self, segments: list[Segment]) -> None:
        assert segments, "a log must have an active segment"
        self._segments = segments

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    def contains(self, segment: Segment) -> bool:
        """Whether the segment still belongs to the log."""
        return any(own is segment for own in self._segments)

    @property
    def active(self) -> Segment:
        """The segment to which appends go."""
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def floor_index(self, offset: int) -> int:
        """Return the index of the segment whose range contains `offset`; 0 for offsets before the first one."""
        if offset >= self._segments[-1].base_offset:
            return len(self._segments) - 1
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    def since(self, offset: int) -> list[Segment]:
        """Return the segment whose range contains `offset`, and all later ones."""
        return self._segments[self.floor_index(offset) :]

    def end_offset_of(self, index: int, log_end_offset: int) -> int:
        """Return the end of the segment's range: the base offset of the next one, or the log end offset."""
        following = index + 1
        return self._segments[following].base_offset if following < len(self._segments) else log_end_offset

    def continues(self, start_offset: int, upper_bound_offset: int) -> bool:
        """Whether later segments have records below the bound, too, which a read from `start_offset` leaves out."""
        following = self.floor_index(start_offset) + 1
        return following < len(self._segments) and self._segments[following].base_offset < upper_bound_offset

    def find(
        self,
        start_offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        log_end_offset: int,
        *,
        whole_batch: bool,
    ) -> tuple[Segment, int, int]:
        """Return where a read begins and how much it returns: segment, position, size in bytes.

        :param whole_batch: Return the first batch whole, even if it is larger than `max_bytes`.
        """
        index = self.floor_index(start_offset)
        segment, position = self._segments[index], self._segments[index].position_of(start_offset)
        while position == segment.size_bytes and index + 1 < len(self._segments):
            index, position = index + 1, 0
            segment = self._segments[index]
        if upper_bound_offset >= self.end_offset_of(index, log_end_offset):
            end = segment.size_bytes
        else:
            end = segment.position_of(upper_bound_offset)
        size_bytes = end - position
        if size_bytes > max_bytes:
            first_bytes = segment.batch_size_bytes(position) if whole_batch else 0
            size_bytes = min(size_bytes, max(max_bytes, first_bytes))
        return segment, position, size_bytes

    def append(self, segment: Segment) -> None:
        """Add a new active segment."""
        assert segment.base_offset > self.active.base_offset, (segment.base_offset, self.active.base_offset)
        self._segments.append(segment)

    def remove_first(self, count: int) -> list[Segment]:
        """Remove and return the oldest segments; the active one stays."""
        assert count < len(self._segments)
        removed = self._segments[:count]
        del self._segments[:count]
        return removed

    def remove_from(self, index: int) -> list[Segment]:
        """Remove and return the newest segments, from `index` on; the first one stays."""
        assert index > 0
        removed = self._segments[index:]
        del self._segments[index:]
        return removed

    @property
    def rolled(self) -> list[Segment]:
        """All segments except the active one."""
        return self._segments[:-1]

    def contains_run(self, run: Sequence[Segment]) -> bool:
        """Whether the segments in `run` are neighbours in this log and do not include the active one."""
        rolled = self.rolled
        first = rolled.index(run[0]) if run[0] in rolled else len(rolled)
        return rolled[first : first + len(run)] == list(run)

    def replace(self, run: Sequence[Segment], segment: Segment) -> None:
        """Replace neighbouring segments (see `contains_run`) by `segment`."""
        assert self.contains_run(run)
        first = self._segments.index(run[0])
        self._segments[first : first + len(run)] = [segment]

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Remove and return all segments, and start again with `segment`."""
        removed = self._segments
        self._segments = [segment]
        return removed


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
