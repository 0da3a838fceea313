"""Maps each key to its latest offset, for compaction.

In machine code the map is a table with 24 bytes per slot, as in Kafka; without it a dictionary, which needs several
times as much memory and accounts for it.
"""

import secrets
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from math import isqrt
from types import ModuleType
from typing import ClassVar, Self

from barnabas.wire.records import key_table
from barnabas.wire.records.columns import RecordColumns
from barnabas.wire.records.kernels import find_table_kernels

SLOT_BYTES = 8 * key_table.SLOT_WORDS

#: Memory per key in a dictionary, as measured: its bytes or digest, its offset, and its share of a half empty table.
ENTRY_BYTES = 200

#: With fewer keys the import of numba does not pay off: a dictionary of them fits into 2 MB.
MANY_KEYS_COUNT = 10_000

#: Tables for few keys are half empty, so that lookups take fewer steps.
_SPARE = 2
_LOAD_FACTOR_MIN = 0.01

#: Rows in a call of a kernel: the event loop, which needs the GIL, waits for about a millisecond.
_ROWS_COUNT = 10_000

#: Keys of at least this length are replaced by a digest of this length, which is safe against collisions.
SHORT_KEY_BYTES = 32

NO_OFFSET = -1


class OffsetMap(ABC):
    """Holds a limited number of keys, which are added in the order of their offsets."""

    entry_bytes: ClassVar[int]  #: memory that is accounted for one key

    def __init__(self, keys_count_max: int) -> None:
        assert keys_count_max > 0, keys_count_max
        self.keys_count_max = keys_count_max
        #: All records up to this offset are accounted for.
        self.latest_offset = NO_OFFSET

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of keys."""

    @abstractmethod
    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Add the keys of these rows, except rows without a key and those before `first_offset`.

        Offsets must be larger than all before. Returns False if the map is full; then all rows up to `latest_offset`
        are added.
        """

    @abstractmethod
    def obsolete_rows(self, columns: RecordColumns) -> bytes | bytearray:
        """Return 1 for each row that has no key or is not the latest of its key; 0 for others and those not added."""

    def update_latest_offset(self, offset: int) -> None:
        """Record that there are no other keys up to `offset`."""
        self.latest_offset = max(self.latest_offset, offset)


def offset_map_of_size(size_bytes: int, load_factor: float, keys_count: int) -> OffsetMap:
    """Return a map for `keys_count` keys, or for fewer if they do not fit into `size_bytes` at `load_factor`."""
    pays = key_table.COMPILED or keys_count >= MANY_KEYS_COUNT
    kernels = find_table_kernels() if pays else None
    if kernels is not None:
        return TableOffsetMap.of_size(size_bytes, load_factor, keys_count, kernels)
    return PlainOffsetMap(max(1, int(size_bytes / ENTRY_BYTES * load_factor)))


class TableOffsetMap(OffsetMap):
    """An offset map in a table of digests."""

    entry_bytes = SLOT_BYTES

    def __init__(self, keys_count_max: int, slots_count: int, kernels: ModuleType) -> None:
        """`slots_count` must be a prime, so that probing reaches every slot, and larger than `keys_count_max`.

        :param kernels: A form of the module `key_table`.
        """
        super().__init__(keys_count_max)
        assert max(keys_count_max, 2) < slots_count, (keys_count_max, slots_count)
        self._kernels = kernels
        self._slots_count = slots_count
        self._slots = array("q", [0]) * (slots_count * key_table.SLOT_WORDS)
        self._secret = array("q", [secrets.randbits(63), secrets.randbits(63)])
        self._count = 0

    @classmethod
    def of_size(cls, size_bytes: int, load_factor: float, keys_count: int, kernels: ModuleType) -> Self:
        """Return a map for `keys_count` keys that uses at most `size_bytes`, filled up to `load_factor`."""
        slots_count_max = int(_SPARE * keys_count / max(load_factor, _LOAD_FACTOR_MIN))
        slots_count = _prime_up_to(max(3, min(size_bytes // SLOT_BYTES, slots_count_max)))
        return cls(min(max(1, int(slots_count * load_factor)), slots_count - 1), slots_count, kernels)

    def __len__(self) -> int:
        return self._count

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """See `OffsetMap.put_rows`."""
        numbers = array("q", rows)
        done = end = 0
        while done == end < len(numbers):
            end = min(done + _ROWS_COUNT, len(numbers))
            done, added_count, self.latest_offset = self._kernels.put_rows(
                self._slots,
                self._slots_count,
                self.keys_count_max - self._count,
                self.latest_offset,
                self._secret,
                columns.data,
                numbers,
                done,
                end,
                first_offset,
                columns.offsets,
                columns.key_positions,
                columns.key_sizes,
            )
            self._count += added_count
        if done == len(numbers):
            return True
        offset = columns.offsets[numbers[done]]
        assert self._count == self.keys_count_max or offset > self.latest_offset, (offset, self.latest_offset)
        return False

    def obsolete_rows(self, columns: RecordColumns) -> bytearray:
        rows_count = len(columns.offsets)
        obsolete = bytearray(rows_count)
        for first in range(0, rows_count, _ROWS_COUNT):
            self._kernels.mark_obsolete(
                self._slots,
                self._slots_count,
                self.latest_offset,
                self._secret,
                columns.data,
                first,
                min(first + _ROWS_COUNT, rows_count),
                columns.offsets,
                columns.key_positions,
                columns.key_sizes,
                obsolete,
            )
        return obsolete


def _prime_up_to(number: int) -> int:
    """Return the largest prime up to `number`."""
    return next(n for n in count(number, -1) if all(n % divisor for divisor in range(2, isqrt(n) + 1)))


class PlainOffsetMap(OffsetMap):
    """An offset map in a dictionary."""

    entry_bytes = ENTRY_BYTES

    def __init__(self, keys_count_max: int) -> None:
        super().__init__(keys_count_max)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """See `OffsetMap.put_rows`."""
        known, keys_count_max = self._offsets, self.keys_count_max
        data, offsets, positions, sizes = _keys_of(columns)
        for row in rows:
            size, offset = sizes[row], offsets[row]
            if size >= 0 and offset >= first_offset:
                assert offset > self.latest_offset, (offset, self.latest_offset)
                if len(known) >= keys_count_max:
                    return False
                key = data[positions[row] : positions[row] + size]
                known[key if size < SHORT_KEY_BYTES else short_key(key)] = self.latest_offset = offset
        return True

    def obsolete_rows(self, columns: RecordColumns) -> bytearray:
        latest, latest_offset = self._offsets.get, self.latest_offset
        data, offsets, positions, sizes = _keys_of(columns)
        obsolete = bytearray(len(offsets))
        for row, offset in enumerate(offsets):
            if offset <= latest_offset:
                size = sizes[row]
                key = data[positions[row] : positions[row] + size] if size >= 0 else b""
                if size < 0 or offset < latest(key if size < SHORT_KEY_BYTES else short_key(key), NO_OFFSET):
                    obsolete[row] = 1
        return obsolete


def _keys_of(columns: RecordColumns) -> tuple[bytes, Sequence[int], Sequence[int], Sequence[int]]:
    return columns.data, columns.offsets, columns.key_positions, columns.key_sizes


def short_key(key: bytes) -> bytes:
    """Return a key, or its digest if it is long."""
    if len(key) < SHORT_KEY_BYTES:
        return key
    return blake2b(key, digest_size=SHORT_KEY_BYTES).digest()
