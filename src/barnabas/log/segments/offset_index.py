"""The offset index (`.index`): every few kilobytes, the last offset of a batch and its position in the file."""

from struct import Struct

from barnabas.log.segments.sparse_index import SparseIndex


class OffsetIndex(SparseIndex):
    """Entries of (offset - base offset, position), four bytes each."""

    ENTRY = Struct(">ii")

    def append(self, offset: int, position: int) -> None:
        """Add the batch at `position`, whose last offset is `offset`."""
        self._append(offset - self.base_offset, position)

    def is_full(self, size_max_bytes: int) -> bool:
        """Whether another entry would exceed `segment.index.bytes`."""
        return self.count >= size_max_bytes // self.ENTRY.size

    def lookup(self, offset: int) -> tuple[int, int] | None:
        """Return the last entry at or before `offset` as (offset, position)."""
        slot = self._slot_at_most(offset - self.base_offset, self._relative_offset)
        return self._absolute(self._entry(slot)) if slot >= 0 else None

    def first_from_position(self, position: int) -> tuple[int, int] | None:
        """Return the first entry of a batch at or after `position`, as (offset, position)."""
        slot = self._slot_at_most(position - 1, self._position) + 1
        return self._absolute(self._entry(slot)) if slot < self.count else None

    def last(self) -> tuple[int, int] | None:
        """Return the last entry as (offset, position)."""
        entry = self._last_entry()
        return None if entry is None else self._absolute(entry)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries from `offset` on."""
        self._keep(self._slot_at_most(offset - 1 - self.base_offset, self._relative_offset) + 1)

    def _relative_offset(self, slot: int) -> int:
        return self._entry(slot)[0]

    def _position(self, slot: int) -> int:
        return self._entry(slot)[1]

    def _absolute(self, entry: tuple[int, int]) -> tuple[int, int]:
        relative_offset, position = entry
        return self.base_offset + relative_offset, position
