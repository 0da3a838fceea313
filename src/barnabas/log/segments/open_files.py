"""Limits the number of open segments, so that ten thousand idle partitions do not need ten thousand descriptors."""

import mmap
from collections import OrderedDict
from typing import Protocol
from weakref import ReferenceType, ref

#: A quarter of the descriptors that most systems allow a process; a mapped segment uses two (Python keeps its own).
OPEN_SEGMENTS_MAX = 256

#: Responses that clients have not read yet keep the maps of segments that were closed meanwhile. If there are as many
#: maps as this, records are copied.
MAPS_MAX = 512
#: Limits for processes that may open more files. Linux allows about 65,000 maps.
MAPS_SHARE_OF_FILES = 8
MAPS_OF_MANY_FILES_MAX = 16_384


def maps_max(files_max: int | None) -> int:
    """Return how many maps may be in use if this process may open `files_max` files; None: any number."""
    if files_max is None:
        return MAPS_OF_MANY_FILES_MAX
    return max(MAPS_MAX, min(files_max // MAPS_SHARE_OF_FILES, MAPS_OF_MANY_FILES_MAX))


class OpenFileOwner(Protocol):
    """An object that opens its files again when it is next used."""

    #: Set on every use; cleared when the algorithm skips the object.
    recently_used: bool

    def close_files(self) -> None:
        """Release descriptors and maps."""
        ...

    def failed(self, error: OSError) -> None:
        """Report that `close_files` failed, when `OpenFiles` called it."""
        ...


class OpenFiles:
    """Closes approximately the least recently used files: each owner gets a second chance (the clock algorithm)."""

    def __init__(self, count_max: int = OPEN_SEGMENTS_MAX, maps_max: int = MAPS_MAX) -> None:
        assert count_max > 0
        self._count_max = count_max
        self._maps_max = maps_max
        self._maps: set[ReferenceType[mmap.mmap]] = (
            set()
        )  #: all that are in use, also those of closed segments
        self._open: OrderedDict[OpenFileOwner, None] = OrderedDict()  #: each owner once, the oldest first

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, newcomer: OpenFileOwner) -> None:
        """Add `newcomer`, and close another owner if there are too many."""
        self._open.pop(newcomer, None)
        while len(self._open) >= self._count_max:
            oldest, _ = self._open.popitem(last=False)
            if oldest.recently_used:
                oldest.recently_used = False
                self._open[oldest] = None
            else:
                _close(oldest)
        self._open[newcomer] = None

    @property
    def may_map(self) -> bool:
        """Whether another map is within the limit."""
        return len(self._maps) < self._maps_max

    def mapped(self, mapped: mmap.mmap) -> None:
        """Count a map until nothing uses it."""
        self._maps.add(ref(mapped, self._maps.discard))

    def closed(self, segment: OpenFileOwner) -> None:
        """Remove a segment that closed its files itself."""
        self._open.pop(segment, None)


def _close(oldest: OpenFileOwner) -> None:
    """Close a segment; an error belongs to that segment's log, not to the caller."""
    try:
        oldest.close_files()
    except OSError as error:
        oldest.failed(error)
