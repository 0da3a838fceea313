"""Hashes many rows by numba."""

import numpy as np
import numpy.typing as npt

from barnabas.wire.records.arrow_fields import Fields
from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, load_byte
from pyspark_barnabas.sink.fingerprints import MULTIPLIER, SHIFT

SEED = 0x9E3779B97F4A7C15
#: Covers values of up to 64 bytes.
WORDS_COUNT = 8

# Numbers are signed 64-bit; products wrap around, and shifts mask the sign bits.
_SEED = int(np.array(SEED, np.uint64).view(np.int64))
_MULTIPLIER = int(np.array(MULTIPLIER, np.uint64).view(np.int64))
_SHIFTED_MASK = (1 << 64 - SHIFT) - 1


def hash_fields(fields: Fields) -> npt.NDArray[np.uint64]:
    """The hash of each field."""
    hashes = np.empty(len(fields.sizes), np.int64)
    hash_all(fields, hashes)
    return hashes.view(np.uint64)


@compiled
def hash_all(fields: Fields, hashes: npt.NDArray[np.int64]) -> None:
    """Fill the hash of each field."""
    base = address_of(fields.data)
    positions, sizes = fields.positions, fields.sizes
    for row in range(sizes.size):
        size, at = max(sizes[row], 0), base + positions[row]
        digest = _SEED ^ size * _MULTIPLIER
        if size >= 8:
            spread = size - 8
            digest = mixed(digest, load_word(at))
            if spread > 0:
                for number in range(1, WORDS_COUNT):
                    digest = mixed(digest, load_word(at + spread * number // (WORDS_COUNT - 1)))
        else:
            word = 0
            for index in range(size):
                word |= load_byte(at + index) << 8 * index
            digest = mixed(digest, word)
        hashes[row] = digest


@compiled_inline
def mixed(digest: int, word: int) -> int:
    """The hash with one more word."""
    word = word * _MULTIPLIER
    return (digest ^ word ^ (word >> SHIFT & _SHIFTED_MASK)) * _MULTIPLIER


@compiled_inline
def load_word(at: int) -> int:
    """The eight bytes at `at`."""
    low: int = load_byte(at) | load_byte(at + 1) << 8 | load_byte(at + 2) << 16 | load_byte(at + 3) << 24
    high: int = load_byte(at + 4) | load_byte(at + 5) << 8 | load_byte(at + 6) << 16 | load_byte(at + 7) << 24
    return low | high << 32
