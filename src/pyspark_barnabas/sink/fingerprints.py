"""Computes a fingerprint of rows that does not depend on their order: the sum of their hashes. No IO.

It detects rows that moved between tasks, not forgeries: of a long value it hashes the size and a few words.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.wire.records.arrow_fields import Fields, fields_of
from pyspark_barnabas.sink.protocol import Fingerprint

SEED = 0x9E3779B97F4A7C15
MULTIPLIER = 0xC6A4A7935BD1E995
SHIFT = 47
#: Covers values of up to 64 bytes.
WORDS_COUNT = 8
_WORD_BYTES = 8

Hashes: TypeAlias = npt.NDArray[np.uint64]


def fingerprint(keys: pa.Array | None, values: pa.Array) -> Fingerprint:
    """The fingerprint of rows with these keys and values; null counts as empty."""
    digest = _select_backend()(fields_of(values))
    if keys is not None:
        digest = _mixed(digest, _select_backend()(fields_of(keys)))
    return Fingerprint(len(values), int(digest.sum(dtype=np.uint64)))


@cache
def _select_backend() -> Callable[[Fields], Hashes]:
    if find_spec("numba") is None:
        return hash_fields
    from pyspark_barnabas.sink import fingerprints_numba

    return fingerprints_numba.hash_fields


def hash_fields(fields: Fields) -> Hashes:
    """The hash of each field by numpy, word by word."""
    starts, sizes = fields.positions, np.maximum(fields.sizes, 0)
    words = _words(fields.data)
    digest = np.uint64(SEED) ^ sizes.astype(np.uint64) * np.uint64(MULTIPLIER)
    digest = _mixed(digest, words[starts] & _masks(sizes))
    rows = np.flatnonzero(sizes > _WORD_BYTES)
    starts, spread = starts[rows], sizes[rows] - _WORD_BYTES
    long = digest[rows]
    for number in range(1, WORDS_COUNT):
        long = _mixed(long, words[starts + spread * number // (WORDS_COUNT - 1)])
    digest[rows] = long
    return digest


def _mixed(digest: Hashes, word: Hashes) -> Hashes:
    word = word * np.uint64(MULTIPLIER)
    return (digest ^ word ^ word >> np.uint64(SHIFT)) * np.uint64(MULTIPLIER)


def _words(data: npt.NDArray[np.uint8]) -> Hashes:
    """The eight bytes from each position; zeros behind the end."""
    padded = np.concatenate([data, np.zeros(_WORD_BYTES, np.uint8)])
    buffer: Any = padded.data
    return np.ndarray((len(data) + 1,), "<u8", buffer, strides=(1,))


def _masks(sizes: npt.NDArray[np.int64]) -> Hashes:
    """Masks for the bytes of a word that belong to the value."""
    table = [(1 << 8 * size) - 1 for size in range(_WORD_BYTES + 1)]
    return np.array(table, np.uint64)[np.minimum(sizes, _WORD_BYTES)]
