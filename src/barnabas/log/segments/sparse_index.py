"""Common base of the offset index and the time index: fixed-size entries, kept in memory while in use.

The file is only written when the segment is closed or rolled: recovery after a crash rebuilds it anyway, so writing
every entry would gain nothing. With many segments in use, each is closed often. So what is in the file is not written
again, and not read before a search needs it.
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
        #: The packed entries from position `_held_from` on: all, or those that were added since the last release.
        self._held: bytearray | None = None
        self._held_from = 0
        #: Size of the file if new entries can be appended to it; 0 if it must be written again, or is unknown.
        self._saved_bytes = 0
        self._unsaved = False

    @property
    def entries(self) -> bytearray:
        """The packed entries, read from the file on first use."""
        if self._held is None:
            self._held = self._read()
        elif self._held_from:
            self._held = self._read()[: self._held_from] + self._held
            self._held_from = 0
        return self._held

    @property
    def count(self) -> int:
        held = self._held_entries()
        return (self._held_from + len(held)) // self.ENTRY.size

    def _held_entries(self) -> bytearray:
        """Return the entries in memory, to which new ones are added. Those in the file stay there, if possible."""
        if self._held is not None:
            return self._held
        if not self._saved_bytes:
            self._saved_bytes, _ = self._file_end()
        if not self._saved_bytes:
            return self.entries
        self._held, self._held_from = bytearray(), self._saved_bytes
        return self._held

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

    def _file_end(self) -> tuple[int, bytes]:
        """Return size and last entry of the file; nothing if it does not end with an entry."""
        with suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            size_bytes = file.seek(0, os.SEEK_END)
            if size_bytes and size_bytes % self.ENTRY.size == 0:
                file.seek(-self.ENTRY.size, os.SEEK_END)
                if any(entry := file.read(self.ENTRY.size)):
                    return size_bytes, entry
        return 0, b""

    def _last_entry(self) -> tuple[int, int] | None:
        """Return the last entry. If the others are not in memory, they are not read, because most are never used."""
        data: bytes | bytearray
        if self._held is None or (self._held_from and not self._held):
            _, entry = self._file_end()
            data = entry or self._read()[-self.ENTRY.size :]
        else:
            data = self._held[-self.ENTRY.size :]
        return self.ENTRY.unpack(data) if data else None

    def _entry(self, slot: int) -> tuple[int, int]:
        first, second = self.ENTRY.unpack_from(self.entries, slot * self.ENTRY.size)
        return first, second

    def _slot_at_most(self, target: int, key: Callable[[int], int]) -> int:
        """Return the last slot whose key is at most `target`; -1 if there is none."""
        return bisect_right(range(self.count), target, key=key) - 1

    def _append(self, first: int, second: int) -> None:
        self._held_entries().extend(self.ENTRY.pack(first, second))
        self._unsaved = True

    def _keep(self, count: int) -> None:
        if count < self.count:
            del self.entries[count * self.ENTRY.size :]
            self._saved_bytes = 0
            self._unsaved = True

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def clear(self) -> None:
        """Remove all entries; `save` writes the change to the file."""
        self._held, self._held_from = bytearray(), 0
        self._saved_bytes = 0
        self._unsaved = True

    def save(self) -> None:
        """Write what the file lacks, which gets its exact size."""
        if not self._unsaved:
            return
        held = self._held_entries()
        if self._saved_bytes:
            disk.append_to_file(self.path, held[self._saved_bytes - self._held_from :])
        else:
            disk.write_file(self.path, held)
        self._saved_bytes = self._held_from + len(held)
        self._unsaved = False

    def release(self) -> None:
        """Save, and release the memory; the next search reads the file again."""
        self.save()
        self._held, self._held_from = None, 0
