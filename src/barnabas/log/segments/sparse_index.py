"""Common base of the offset index and the time index: fixed-size entries, kept in memory while in use.

The file is only written when the segment is closed or rolled: recovery after a crash rebuilds it anyway, so writing
every entry would gain nothing.
"""

import os
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct

from barnabas.base import disk


class SparseIndex:
    """Entries of two ascending numbers, one of which is an offset relative to the base offset."""

    ENTRY: Struct

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._loaded: bytearray | None = None
        self._unsaved = False

    @property
    def entries(self) -> bytearray:
        """The packed entries, read from the file on first use."""
        if self._loaded is None:
            self._loaded = self._read()
        return self._loaded

    @property
    def count(self) -> int:
        return len(self.entries) // self.ENTRY.size

    def _read(self) -> bytearray:
        """Read the file up to the zeros at its end: Kafka preallocates the file of an active segment.

        A single entry may be all zeros: that of a record at the base offset with timestamp 0.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return bytearray()
        used_bytes = len(data.rstrip(b"\0")) or (len(data) if len(data) == self.ENTRY.size else 0)
        count = min(-(-used_bytes // self.ENTRY.size), len(data) // self.ENTRY.size)
        return bytearray(data[: count * self.ENTRY.size])

    def _last_entry(self) -> tuple[int, int] | None:
        """Return the last entry. If the others are not in memory, they are not read, because most are never used."""
        data = self._read_last() if self._loaded is None else self._loaded[-self.ENTRY.size :]
        return self.ENTRY.unpack(data) if data else None

    def _read_last(self) -> bytes:
        with suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            size_bytes = file.seek(0, os.SEEK_END)
            if size_bytes and size_bytes % self.ENTRY.size == 0:
                file.seek(-self.ENTRY.size, os.SEEK_END)
                if any(entry := file.read(self.ENTRY.size)):
                    return entry
        return bytes(self._read()[-self.ENTRY.size :])  # it is somewhere before the zeros

    def _entry(self, slot: int) -> tuple[int, int]:
        first, second = self.ENTRY.unpack_from(self.entries, slot * self.ENTRY.size)
        return first, second

    def _slot_at_most(self, target: int, key: Callable[[int], int]) -> int:
        """Return the last slot whose key is at most `target`; -1 if there is none."""
        return bisect_right(range(self.count), target, key=key) - 1

    def _append(self, first: int, second: int) -> None:
        self.entries.extend(self.ENTRY.pack(first, second))
        self._unsaved = True

    def _keep(self, count: int) -> None:
        if count < self.count:
            del self.entries[count * self.ENTRY.size :]
            self._unsaved = True

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def clear(self) -> None:
        """Remove all entries; `save` writes the change to the file."""
        self._loaded = bytearray()
        self._unsaved = True

    def save(self) -> None:
        """Write the file at its exact size if it lacks any change."""
        if self._unsaved:
            disk.write_file(self.path, self.entries)
            self._unsaved = False

    def release(self) -> None:
        """Save, and release the memory; the next use reads the file again."""
        self.save()
        self._loaded = None
