"""`.txnindex`: the aborted transactions whose markers lie in a segment (KIP-98), in the order of their markers."""

import os
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """What readers of committed records must know to leave out a transaction's records."""

    producer_id: int
    first_offset: int
    #: That of the marker.
    last_offset: int
    #: As it was once the marker had been appended.
    last_stable_offset: int


class TransactionIndex:
    """The file, written at every abort; there is none while nothing was aborted."""

    __slots__ = ("_loaded", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._loaded: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> Sequence[AbortedTransaction]:
        """All of them, read from the file on first use.

        :raises OSError: When the disk fails.
        :raises KafkaError: CORRUPT_MESSAGE when the file holds something else.
        """
        return self._entries()

    @property
    def is_sound(self) -> bool:
        """Whether the file can be read, or is not there.

        :raises OSError: When the disk fails.
        """
        try:
            self._entries()
        except KafkaError:
            return False
        return True

    def _entries(self) -> list[AbortedTransaction]:
        if self._loaded is None:
            self._loaded = read_entries(self.path)
        return self._loaded

    def append(self, aborted: AbortedTransaction) -> None:
        """Note a transaction that has just been aborted.

        :raises OSError: When the disk fails.
        """
        entries = self._entries()
        assert not entries or entries[-1].last_offset < aborted.last_offset, (entries[-1], aborted)
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
        entries.append(aborted)

    def collect(self, start_offset: int, upper_bound_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add to `found` what was aborted of `[start_offset, upper_bound_offset)`; whether that is all there can be.

        It is when a transaction in here was decided with everything below the bound; else look into later segments.
        """
        entries = self._entries()
        first = bisect_left(entries, start_offset, key=_last_offset)
        #: The first that was decided with everything below the bound, if any.
        last = bisect_left(entries, upper_bound_offset, key=_last_stable_offset)
        found += [each for each in entries[first : last + 1] if each.first_offset < upper_bound_offset]
        return last < len(entries)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions whose markers lie at or after `offset`."""
        kept = [each for each in self._entries() if each.last_offset < offset]
        if len(kept) < len(self._entries()):
            os.truncate(self.path, len(kept) * _ENTRY.size)
            self._loaded = kept

    def clear(self) -> None:
        """Forget everything, the file included."""
        self.path.unlink(missing_ok=True)
        self._loaded = []

    def release(self) -> None:
        """Give the memory back; the next use reads the file again."""
        self._loaded = None


def read_entries(path: Path) -> list[AbortedTransaction]:
    """What a file says; nothing when there is none.

    :raises OSError: When the disk fails.
    :raises KafkaError: CORRUPT_MESSAGE when the file holds something else.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) % _ENTRY.size:
        raise _damaged(path, f"{len(data)} bytes are no whole number of entries of {_ENTRY.size}")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise _damaged(path, f"version {version} of an entry: {_VERSION} is known")
        entries.append(AbortedTransaction(*fields))
    return entries


def _last_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_offset


def _last_stable_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_stable_offset


def _damaged(path: Path, what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {what}")
