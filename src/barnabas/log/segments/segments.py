"""The segments of one log in the order of their offsets."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.log.segments.segment import Segment


class FilePart(NamedTuple):
    """Bytes of a file that is written at its end alone."""

    path: Path
    position: int
    size_bytes: int
    #: Nothing comes after it.
    is_last: bool


class LogSlice(NamedTuple):
    """Bytes of one segment, from a batch's start on; the last batch may be cut off."""

    data: memoryview
    segment_base_offset: int
    position: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)


class Segments:
    """At least one segment; the last one is active, which means that it is written to."""

    def __init__(self, segments: list[Segment]) -> None:
        assert segments, "a log has at least its active segment"
        self._segments = segments

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    def holds(self, segment: Segment) -> bool:
        """Whether the segment is still one of the log's."""
        return any(each is segment for each in self._segments)

    @property
    def active(self) -> Segment:
        """The segment that is written to."""
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size_bytes for segment in self._segments)

    def floor_index(self, offset: int) -> int:
        """Index of the segment in whose range `offset` lies; that of the first one for offsets before it."""
        if offset >= self._segments[-1].base_offset:
            return len(self._segments) - 1
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    def since(self, offset: int) -> list[Segment]:
        """The segment in whose range `offset` lies, and all that follow."""
        return self._segments[self.floor_index(offset) :]

    def end_offset_of(self, index: int, log_end_offset: int) -> int:
        """Offset after the segment's range: where the next one begins, or the end of the log."""
        following = index + 1
        return self._segments[following].base_offset if following < len(self._segments) else log_end_offset

    def append(self, segment: Segment) -> None:
        """Make `segment` the active one."""
        assert segment.base_offset > self.active.base_offset, (segment.base_offset, self.active.base_offset)
        self._segments.append(segment)

    def remove_first(self, count: int) -> list[Segment]:
        """Take the oldest out; the active one stays."""
        assert count < len(self._segments)
        removed = self._segments[:count]
        del self._segments[:count]
        return removed

    def remove_from(self, index: int) -> list[Segment]:
        """Take the newest out, from `index` on; the first one stays."""
        assert index > 0
        removed = self._segments[index:]
        del self._segments[index:]
        return removed

    @property
    def rolled(self) -> list[Segment]:
        """All but the active one."""
        return self._segments[:-1]

    def hold(self, run: Sequence[Segment]) -> bool:
        """Whether `run` are neighbours here, the active one not among them."""
        rolled = self.rolled
        first = rolled.index(run[0]) if run[0] in rolled else len(rolled)
        return rolled[first : first + len(run)] == list(run)

    def replace(self, run: Sequence[Segment], segment: Segment) -> None:
        """Put `segment` in the place of neighbours that `hold` knows."""
        assert self.hold(run)
        first = self._segments.index(run[0])
        self._segments[first : first + len(run)] = [segment]

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Take all out and begin again with `segment`."""
        removed = self._segments
        self._segments = [segment]
        return removed


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
