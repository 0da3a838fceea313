"""The latest offset of each key in a table of numpy's: 24 bytes a slot, all keys of a step at once."""

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

#: A slot is two words of a key's digest, and its offset plus one: 0 is an empty one. Kafka's is as large.
_SLOT_WORDS = 3
SLOT_BYTES = 8 * _SLOT_WORDS

#: Of the eight words of a BLAKE2b digest: nobody makes two keys that have these 128 bits in common.
_DIGEST_WORDS = 2
_WHOLE_DIGEST_WORDS = 8

#: Tables of few keys are half empty: what is looked for is found the sooner.
_SPARE = 2
_LOAD_FACTOR_MIN = 0.01


class NumpyOffsetMap(OffsetMap):
    """Open addressing; where the next slot is looked for, the second word of the digest says (double hashing)."""

    entry_bytes = SLOT_BYTES

    def __init__(self, keys_count_max: int, slots_count: int) -> None:
        """`slots_count` is a prime, so that every slot is come by, and there is an empty one."""
        super().__init__(keys_count_max)
        assert keys_count_max < slots_count, (keys_count_max, slots_count)
        self._slots = np.zeros((slots_count, _SLOT_WORDS), np.int64)
        self._count = 0

    @classmethod
    def of_size(cls, size_bytes: int, load_factor: float, keys_count: int) -> Self:
        """One for `keys_count` keys that fills up to `load_factor` of at most `size_bytes`."""
        wanted_count = int(_SPARE * keys_count / max(load_factor, _LOAD_FACTOR_MIN))
        slots_count = _prime_up_to(max(3, min(size_bytes // SLOT_BYTES, wanted_count)))
        return cls(min(max(1, int(slots_count * load_factor)), slots_count - 1), slots_count)

    def __len__(self) -> int:
        return self._count

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Note the keys of these rows."""
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
        """1 for each row that is not the latest of its key, or has none."""
        offsets = _numbers(columns.offsets)
        obsolete = offsets <= self.latest_offset
        rows = np.flatnonzero(obsolete & (_numbers(columns.key_sizes) >= 0))
        obsolete[rows] = offsets[rows] < self._latest(_digests(columns, rows))
        return obsolete.tobytes()

    def _put(self, digests: Numbers, offsets: Numbers) -> None:
        """Of rows with the same key, which go the same way through the slots, the last one stays."""
        slots, (at, step) = self._slots, self._way(digests)
        left = np.arange(offsets.size)
        while left.size:
            is_empty = slots[at, 2] == 0
            claimed, by = at[is_empty], left[is_empty]
            slots[claimed, :_DIGEST_WORDS] = digests[
                by
            ]  # of several claims the last counts: numpy assigns in order
            slots[claimed, 2] = offsets[by] + 1
            self._count += int(np.count_nonzero(slots[claimed, 2] == offsets[by] + 1))
            is_there = (slots[at, :_DIGEST_WORDS] == digests[left]).all(axis=1)
            slots[at[is_there], 2] = offsets[left[is_there]] + 1
            left, at, step = left[~is_there], at[~is_there], step[~is_there]
            at = (at + step) % len(slots)

    def _latest(self, digests: Numbers) -> Numbers:
        """Where the latest record of each key is; -1 for a key that was not put."""
        slots, (at, step) = self._slots, self._way(digests)
        found = np.full(len(digests), NO_OFFSET)
        left = np.arange(len(digests))
        while left.size:
            seen = slots[at]
            is_there = (seen[:, :_DIGEST_WORDS] == digests[left]).all(axis=1) & (seen[:, 2] > 0)
            found[left[is_there]] = seen[is_there, 2] - 1
            goes_on = ~is_there & (seen[:, 2] > 0)
            left, at, step = left[goes_on], at[goes_on], step[goes_on]
            at = (at + step) % len(slots)
        return found

    def _way(self, digests: Numbers) -> tuple[Numbers, Numbers]:
        """Where each key is looked for first, and how far apart the next places are."""
        slots_count = len(self._slots)
        return digests[:, 0] % slots_count, digests[:, 1] % (slots_count - 1) + 1


def _numbers(column: Sequence[int]) -> Numbers:
    return np.asarray(column, np.int64)


def _digests(columns: RecordColumns, rows: Numbers) -> Numbers:
    data, positions = columns.data, _numbers(columns.key_positions)[rows]
    ends = positions + _numbers(columns.key_sizes)[rows]
    places = zip(positions.tolist(), ends.tolist(), strict=True)
    digests = b"".join([blake2b(data[start:end]).digest() for start, end in places])
    return np.frombuffer(digests, np.int64).reshape(-1, _WHOLE_DIGEST_WORDS)[:, :_DIGEST_WORDS]


def _prime_up_to(number: int) -> int:
    """The largest prime that is not larger."""
    return next(each for each in count(number, -1) if all(each % by for by in range(2, isqrt(each) + 1)))
