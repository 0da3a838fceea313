"""Maps each key to its latest offset, for compaction.

With numpy the map is a table with 24 bytes per key, as in Kafka; without it a dictionary, which needs several times as
much memory and accounts for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import ClassVar

from barnabas.wire.records.columns import RecordColumns

#: Memory per key in a dictionary, as measured: its bytes or digest, its offset, and its share of a half empty table.
ENTRY_BYTES = 200

#: With fewer keys the calls and the import of numpy do not pay off: a dictionary of them fits into 2 MB.
MANY_KEYS_COUNT = 10_000

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
    if keys_count >= MANY_KEYS_COUNT and _has_numpy():
        from barnabas.log.compaction.offset_map_numpy import NumpyOffsetMap

        return NumpyOffsetMap.of_size(size_bytes, load_factor, keys_count)
    return PlainOffsetMap(max(1, int(size_bytes / ENTRY_BYTES * load_factor)))


@cache
def _has_numpy() -> bool:
    return find_spec("numpy") is not None


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
        known, offsets, keys_count_max = self._offsets, columns.offsets, self.keys_count_max
        for row in rows:
            key, offset = columns.key(row), offsets[row]
            if key is not None and offset >= first_offset:
                assert offset > self.latest_offset, (offset, self.latest_offset)
                if len(known) >= keys_count_max:
                    return False
                known[short_key(key)] = self.latest_offset = offset
        return True

    def obsolete_rows(self, columns: RecordColumns) -> bytearray:
        latest, latest_offset = self._offsets.get, self.latest_offset
        obsolete = bytearray(len(columns.offsets))
        for row, offset in enumerate(columns.offsets):
            if offset <= latest_offset:
                key = columns.key(row)
                if key is None or offset < latest(short_key(key), NO_OFFSET):
                    obsolete[row] = 1
        return obsolete


def short_key(key: bytes) -> bytes:
    """Return a key, or its digest if it is long."""
    if len(key) < SHORT_KEY_BYTES:
        return key
    return blake2b(key, digest_size=SHORT_KEY_BYTES).digest()
