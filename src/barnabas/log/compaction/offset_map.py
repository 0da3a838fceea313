"""Which offset is the latest of each key: what compaction goes by.

With numpy it is a table of Kafka's size, 24 bytes a key; without it a dictionary, which takes several times as much
memory, and counts it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import ClassVar

from barnabas.wire.records.columns import RecordColumns

#: What a key costs in a dictionary: its bytes or digest, its offset, its share of a table that may be half empty;
#: measured.
ENTRY_BYTES = 200

#: Fewer keys are worth neither numpy's calls nor its import: they fit into 2 MB as they are.
MANY_KEYS_COUNT = 10_000

#: Keys from this length on are known by a digest of so many bytes, so that no key can be taken for another.
SHORT_KEY_BYTES = 32

NO_OFFSET = -1


class OffsetMap(ABC):
    """Takes so many keys, in the order of their offsets."""

    entry_bytes: ClassVar[int]  #: what a key is counted for

    def __init__(self, keys_count_max: int) -> None:
        assert keys_count_max > 0, keys_count_max
        self.keys_count_max = keys_count_max
        #: Up to here every record is accounted for.
        self.latest_offset = NO_OFFSET

    @abstractmethod
    def __len__(self) -> int:
        """Keys."""

    @abstractmethod
    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Note the keys of these rows, those without one and those before `first_offset` left out.

        Offsets are larger than all before. False when there was no room: up to `latest_offset` all are noted then.
        """

    @abstractmethod
    def obsolete_rows(self, columns: RecordColumns) -> bytes | bytearray:
        """1 for each row that is not the latest of its key, or has none; 0 for others and for what is not noted yet."""

    def update_latest_offset(self, offset: int) -> None:
        """Note that nothing else up to `offset` has a key."""
        self.latest_offset = max(self.latest_offset, offset)


def offset_map_of_size(size_bytes: int, load_factor: float, keys_count: int) -> OffsetMap:
    """One that takes `keys_count` keys, fewer if they do not fit into `size_bytes` of memory up to `load_factor`."""
    if keys_count >= MANY_KEYS_COUNT and _has_numpy():
        from barnabas.log.compaction.offset_map_numpy import NumpyOffsetMap

        return NumpyOffsetMap.of_size(size_bytes, load_factor, keys_count)
    return PlainOffsetMap(max(1, int(size_bytes / ENTRY_BYTES * load_factor)))


@cache
def _has_numpy() -> bool:
    return find_spec("numpy") is not None


class PlainOffsetMap(OffsetMap):
    """A dictionary."""

    entry_bytes = ENTRY_BYTES

    def __init__(self, keys_count_max: int) -> None:
        super().__init__(keys_count_max)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Note the keys of these rows."""
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
        """1 for each row that is not the latest of its key, or has none."""
        latest, latest_offset = self._offsets.get, self.latest_offset
        obsolete = bytearray(len(columns.offsets))
        for row, offset in enumerate(columns.offsets):
            if offset <= latest_offset:
                key = columns.key(row)
                if key is None or offset < latest(short_key(key), NO_OFFSET):
                    obsolete[row] = 1
        return obsolete


def short_key(key: bytes) -> bytes:
    """What a key is known by: itself, or from a certain length on a digest that nobody can make another key for."""
    if len(key) < SHORT_KEY_BYTES:
        return key
    return blake2b(key, digest_size=SHORT_KEY_BYTES).digest()
