"""Hashes a column of keys for partitioning."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from barnabas.wire.records.arrow_fields import Fields, fields_of

Words: TypeAlias = NDArray[np.uint32]

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
_SEED = np.uint32(SEED)
_MULTIPLIER = np.uint32(MULTIPLIER)
_WORD_BYTES = 4


def murmur2(keys: pa.Array) -> Words:
    """The hash of `client.producer.partitioner` for all keys; null hashes like an empty key."""
    return _select_backend()(fields_of(keys))


@cache
def _select_backend() -> Callable[[Fields], Words]:
    if find_spec("numba") is None:
        return hash_fields
    from barnabas.wire.records import arrow_hashes_numba

    return arrow_hashes_numba.hash_fields


def hash_fields(keys: Fields) -> Words:
    """The hashes by numpy: word by word, for all keys that are long enough."""
    starts, sizes = keys.positions, np.maximum(keys.sizes, 0)
    digest = _SEED ^ sizes.astype(np.uint32)
    rows = np.arange(len(sizes))
    for word in range(int(sizes.max(initial=0)) // _WORD_BYTES):
        rows = rows[sizes[rows] >= (word + 1) * _WORD_BYTES]
        part = _word(keys, starts[rows] + word * _WORD_BYTES, _WORD_BYTES) * _MULTIPLIER
        part = (part ^ part >> np.uint32(24)) * _MULTIPLIER
        digest[rows] = digest[rows] * _MULTIPLIER ^ part
    for tail in range(1, _WORD_BYTES):
        rows = np.flatnonzero(sizes % _WORD_BYTES == tail)
        last = _word(keys, starts[rows] + sizes[rows] - tail, tail)
        digest[rows] = (digest[rows] ^ last) * _MULTIPLIER
    digest = (digest ^ digest >> np.uint32(13)) * _MULTIPLIER
    return digest ^ digest >> np.uint32(15)


def _word(keys: Fields, positions: NDArray[np.int64], count: int) -> Words:
    word = np.zeros(len(positions), np.uint32)
    for byte in range(count):
        word |= keys.data[positions + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word
