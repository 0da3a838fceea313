"""A fingerprint of rows that does not depend on their order: the sum of a hash of each. No IO.

It is there to notice rows that moved from task to task between two runs, not to withstand forgers: of a long value it
takes the size and a few words, from the first to the last.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_barnabas.sink.partitioning import Longs, byte_spans
from pyspark_barnabas.sink.protocol import Fingerprint

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)
_WORD_BYTES = 8
#: So many cover values of up to 64 bytes.
_WORDS_COUNT = 8


def fingerprint(keys: pa.Array | None, values: pa.Array) -> Fingerprint:
    """Of rows with these keys and values; a null is as good as no bytes."""
    digest = _hashes(values)
    if keys is not None:
        digest = _mixed(digest, _hashes(keys))
    return Fingerprint(len(values), int(digest.sum(dtype=np.uint64)))


def _hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    starts, sizes, data = byte_spans(values)
    words = _words(data)
    digest = _SEED ^ sizes.astype(np.uint64) * _MULTIPLIER
    digest = _mixed(digest, words[starts] & _masks(sizes))
    rows = np.flatnonzero(sizes > _WORD_BYTES)
    starts, spread = starts[rows], sizes[rows] - _WORD_BYTES
    long = digest[rows]
    for number in range(1, _WORDS_COUNT):
        long = _mixed(long, words[starts + spread * number // (_WORDS_COUNT - 1)])
    digest[rows] = long
    return digest


def _mixed(digest: npt.NDArray[np.uint64], word: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    word = word * _MULTIPLIER
    return (digest ^ word ^ word >> _SHIFT) * _MULTIPLIER


def _words(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """The eight bytes from each position on; behind the end there are zeros."""
    padded = np.concatenate([data, np.zeros(_WORD_BYTES, np.uint8)])
    buffer: Any = padded.data
    return np.ndarray((len(data) + 1,), "<u8", buffer, strides=(1,))


def _masks(sizes: Longs) -> npt.NDArray[np.uint64]:
    """The bytes of a word that belong to the value."""
    table = [(1 << 8 * size) - 1 for size in range(_WORD_BYTES + 1)]
    return np.array(table, np.uint64)[np.minimum(sizes, _WORD_BYTES)]
