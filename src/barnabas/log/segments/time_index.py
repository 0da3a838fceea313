"""The time index (`.timeindex`): the largest timestamp so far and the last offset of the batch that contains it."""

from struct import Struct

from barnabas.log.segments.sparse_index import SparseIndex
from barnabas.wire.records.batch import NO_TIMESTAMP


class TimeIndex(SparseIndex):
    """Entries of (timestamp, offset - base offset), eight and four bytes."""

    ENTRY = Struct(">qi")

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Append a new largest timestamp; ignored unless it is larger than the last one."""
        if timestamp_ms > self.last()[0]:
            self._append(timestamp_ms, offset - self.base_offset)

    def is_full(self, size_max_bytes: int) -> bool:
        """Whether only the last slot is free, which closing the segment needs."""
        return self.count >= size_max_bytes // self.ENTRY.size - 1

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """Return the last entry at or before `timestamp_ms` as (timestamp, offset), else (-1, base offset)."""
        slot = self._slot_at_most(timestamp_ms, self._timestamp)
        return self._absolute(self._entry(slot) if slot >= 0 else None)

    def last(self) -> tuple[int, int]:
        """Return the last entry as (timestamp, offset), else (-1, base offset)."""
        return self._absolute(self._last_entry())

    def truncate_to(self, offset: int) -> None:
        """Remove the entries from `offset` on."""
        self._keep(self._slot_at_most(offset - 1 - self.base_offset, self._relative_offset) + 1)

    def _timestamp(self, slot: int) -> int:
        return self._entry(slot)[0]

    def _relative_offset(self, slot: int) -> int:
        return self._entry(slot)[1]

    def _absolute(self, entry: tuple[int, int] | None) -> tuple[int, int]:
        if entry is None:
            return NO_TIMESTAMP, self.base_offset
        timestamp_ms, relative_offset = entry
        return timestamp_ms, self.base_offset + relative_offset
