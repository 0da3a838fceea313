"""A bound on open files: ten thousand idle partitions must not hold ten thousand descriptors."""

from collections import deque
from typing import Protocol

#: A quarter of what most systems allow a process; a mapped segment counts twice (Python keeps its own).
OPEN_SEGMENTS_MAX = 256


class OpenFileOwner(Protocol):
    """Something that opens its files again when it is next used."""

    #: Set by every use, cleared when the turn of closing passes by.
    used: bool

    def close_files(self) -> None:
        """Let go of descriptors and maps."""
        ...

    def failed(self, error: OSError) -> None:
        """Hear that `close_files`, which somebody else had to call, failed."""
        ...


class OpenFiles:
    """Closes whoever was not used for longest, nearly: each gets a second chance (the clock algorithm)."""

    def __init__(self, count_max: int = OPEN_SEGMENTS_MAX) -> None:
        assert count_max > 0
        self._count_max = count_max
        self._open: deque[OpenFileOwner] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, newcomer: OpenFileOwner) -> None:
        """Take `newcomer` in, and close another when there are too many."""
        while len(self._open) >= self._count_max:
            oldest = self._open.popleft()
            if oldest.used:
                oldest.used = False
                self._open.append(oldest)
            else:
                _close(oldest)
        self._open.append(newcomer)

    def closed(self, segment: OpenFileOwner) -> None:
        """Forget a segment that closed its files itself."""
        if segment in self._open:
            self._open.remove(segment)


def _close(oldest: OpenFileOwner) -> None:
    """Close a segment; an error belongs to that segment's log, not to the caller."""
    try:
        oldest.close_files()
    except OSError as error:
        oldest.failed(error)
