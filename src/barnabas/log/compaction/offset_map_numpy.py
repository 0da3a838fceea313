"""An offset map in a numpy table: 24 bytes per slot, and all keys of a step are processed at once."""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from math import isqrt
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barnabas.log.compaction.offset_map import NO_OFFSET, OffsetMap
from barnabas.wire.records.columns import RecordColumns

Numbers: TypeAlias = NDArray[np.int64]

#: A slot is two words of a key's digest, and its offset plus one; 0 means empty. Kafka's slots have the same size.
_SLOT_WORDS = 3
SLOT_BYTES = 8 * _SLOT_WORDS

#: Words used of the eight words of a BLAKE2b digest: 128 bits are safe against collisions.
_DIGEST_WORDS = 2
_WHOLE_DIGEST_WORDS = 8

#: Tables for few keys are half empty, so that lookups take fewer steps.
_SPARE = 2
_LOAD_FACTOR_MIN = 0.01


class NumpyOffsetMap(OffsetMap):
    """Open addressing with double hashing: the second word of the digest determines the distance to the next slot."""

    entry_bytes = SLOT_BYTES

    def __init__(self, keys_count_max: int, slots_count: int) -> None:
        """`slots_count` must be a prime, so that probing reaches every slot, and larger than `keys_count_max`."""
        super().__init__(keys_count_max)
        assert keys_count_max < slots_count, (keys_count_max, slots_count)
        self._slots = np.zeros((slots_count, _SLOT_WORDS), np.int64)
        self._count = 0

    @classmethod
    def of_size(cls, size_bytes: int, load_factor: float, keys_count: int) -> Self:
        """Return a map for `keys_count` keys that uses at most `size_bytes`, filled up to `load_factor`."""
        slots_count_max = int(_SPARE * keys_count / max(load_factor, _LOAD_FACTOR_MIN))
        slots_count = _prime_up_to(max(3, min(size_bytes // SLOT_BYTES, slots_count_max)))
        return cls(min(max(1, int(slots_count * load_factor)), slots_count - 1), slots_count)

    def __len__(self) -> int:
        return self._count

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """See `OffsetMap.put_rows`."""
        offsets, sizes = _numbers(columns.offsets), _numbers(columns.key_sizes)
        left = np.array(rows, np.int64)
        left = left[(sizes[left] >= 0) & (offsets[left] >= first_offset)]
        while left.size:
            room_count = self.keys_count_max - self._count
            if not room_count:
                return False
            fitting, left = left[:room_count], left[room_count:]
            assert offsets[fitting[0]] > self.latest_offset, (offsets[fitting[0]], self.latest_offset)
            self._put(_digests(columns, fitting), offsets[fitting])
            self.latest_offset = int(offsets[fitting[-1]])
        return True

    def obsolete_rows(self, columns: RecordColumns) -> bytes:
        offsets = _numbers(columns.offsets)
        obsolete = offsets <= self.latest_offset
        rows = np.flatnonzero(obsolete & (_numbers(columns.key_sizes) >= 0))
        obsolete[rows] = offsets[rows] < self._latest(_digests(columns, rows))
        return obsolete.tobytes()

    def _put(self, digests: Numbers, offsets: Numbers) -> None:
        """Put the offsets of keys; of several rows with the same key, which probe the same slots, the last one wins."""
        slots, (at, step) = self._slots, self._probe(digests)
        left = np.arange(offsets.size)
        while left.size:
            is_empty = slots[at, 2] == 0
            claimed, by = at[is_empty], left[is_empty]
            # If a slot is claimed several times, the last claim counts: numpy assigns in order.
            slots[claimed, :_DIGEST_WORDS] = digests[by]
            slots[claimed, 2] = offsets[by] + 1
            self._count += int(np.count_nonzero(slots[claimed, 2] == offsets[by] + 1))
            is_match = (slots[at, :_DIGEST_WORDS] == digests[left]).all(axis=1)
            slots[at[is_match], 2] = offsets[left[is_match]] + 1
            left, at, step = left[~is_match], at[~is_match], step[~is_match]
            at = (at + step) % len(slots)

    def _latest(self, digests: Numbers) -> Numbers:
        """Return the latest offset of each key; -1 for a key that is not in the map."""
        slots, (at, step) = self._slots, self._probe(digests)
        latest = np.full(len(digests), NO_OFFSET)
        left = np.arange(len(digests))
        while left.size:
            seen = slots[at]
            is_match = (seen[:, :_DIGEST_WORDS] == digests[left]).all(axis=1) & (seen[:, 2] > 0)
            latest[left[is_match]] = seen[is_match, 2] - 1
            continues = ~is_match & (seen[:, 2] > 0)
            left, at, step = left[continues], at[continues], step[continues]
            at = (at + step) % len(slots)
        return latest

    def _probe(self, digests: Numbers) -> tuple[Numbers, Numbers]:
        """Return the first slot of each key, and its distance to the next slots."""
        slots_count = len(self._slots)
        return digests[:, 0] % slots_count, digests[:, 1] % (slots_count - 1) + 1


def _numbers(column: Sequence[int]) -> Numbers:
    return np.asarray(column, np.int64)


def _digests(columns: RecordColumns, rows: Numbers) -> Numbers:
    data, positions = columns.data, _numbers(columns.key_positions)[rows]
    ends = positions + _numbers(columns.key_sizes)[rows]
    ranges = zip(positions.tolist(), ends.tolist(), strict=True)
    digests = b"".join([blake2b(data[start:end]).digest() for start, end in ranges])
    return np.frombuffer(digests, np.int64).reshape(-1, _WHOLE_DIGEST_WORDS)[:, :_DIGEST_WORDS]


def _prime_up_to(number: int) -> int:
    """Return the largest prime up to `number`."""
    return next(n for n in count(number, -1) if all(n % divisor for divisor in range(2, isqrt(n) + 1)))
