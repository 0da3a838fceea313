"""The transaction index (`.txnindex`): aborted transactions with markers in a segment (KIP-98), in marker order."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.base import disk
from barnabas.wire.errors import ErrorCode, KafkaError

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction, with what readers of committed records need to skip its records."""

    producer_id: int
    first_offset: int
    #: Offset of the transaction marker.
    last_offset: int
    #: The last stable offset after the marker was appended.
    last_stable_offset: int


class TransactionIndex:
    """Written at every abort; there is no file while nothing was aborted."""

    __slots__ = ("_loaded", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._loaded: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> Sequence[AbortedTransaction]:
        """All entries, read from the file on first use.

        :raises OSError: When the disk fails.
        :raises KafkaError: CORRUPT_MESSAGE when the file is damaged.
        """
        return self._entries()

    @property
    def is_sound(self) -> bool:
        """Whether the file can be read, or does not exist.

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
        """Add a transaction that has just been aborted.

        :raises OSError: When the disk fails.
        """
        entries = self._entries()
        assert not entries or entries[-1].last_offset < aborted.last_offset, (entries[-1], aborted)
        disk.append_to_file(self.path, _ENTRY.pack(_VERSION, *aborted))
        entries.append(aborted)

    def collect(self, start_offset: int, upper_bound_offset: int, aborted: list[AbortedTransaction]) -> bool:
        """Add the aborted transactions of `[start_offset, upper_bound_offset)` to `aborted`.

        :return: Whether these are all, because the last stable offset of an entry is at or above the bound; else
            continue with later segments.
        """
        entries = self._entries()
        first = bisect_left(entries, start_offset, key=_last_offset)
        #: Index of the first entry with a last stable offset at or above the bound, if any.
        last = bisect_left(entries, upper_bound_offset, key=_last_stable_offset)
        aborted += [entry for entry in entries[first : last + 1] if entry.first_offset < upper_bound_offset]
        return last < len(entries)

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions with markers at or after `offset`."""
        remaining = [entry for entry in self._entries() if entry.last_offset < offset]
        if len(remaining) < len(self._entries()):
            disk.truncate_file(self.path, len(remaining) * _ENTRY.size)
            self._loaded = remaining

    def clear(self) -> None:
        """Remove all entries and the file."""
        disk.remove_file(self.path)
        self._loaded = []

    def release(self) -> None:
        """Release the memory; the next use reads the file again."""
        self._loaded = None


def read_entries(path: Path) -> list[AbortedTransaction]:
    """Return the entries of a file; none if it does not exist.

    :raises OSError: When the disk fails.
    :raises KafkaError: CORRUPT_MESSAGE when the file is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) % _ENTRY.size:
        raise _damaged(path, f"size {len(data)} must be a multiple of {_ENTRY.size} bytes")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise _damaged(path, f"unsupported version {version} of an entry; it must be {_VERSION}")
        entries.append(AbortedTransaction(*fields))
    return entries


def _last_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_offset


def _last_stable_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_stable_offset


def _damaged(path: Path, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {message}")
