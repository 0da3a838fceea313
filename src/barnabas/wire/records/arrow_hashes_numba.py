"""Hashes many keys for partitioning, by numba."""

import numpy as np
from numpy.typing import NDArray

from barnabas.wire.records.arrow_fields import Fields
from barnabas.wire.records.compiled import address_of, compiled, load_byte

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995

# Numbers are signed 64-bit; the product of two 32-bit numbers fits, because the multiplier is below 2^31.
_MASK = 0xFFFFFFFF


def hash_fields(keys: Fields) -> NDArray[np.uint32]:
    """See `arrow_hashes.murmur2`."""
    hashes = np.empty(len(keys.sizes), np.uint32)
    hash_all(keys, hashes)
    return hashes


@compiled
def hash_all(keys: Fields, hashes: NDArray[np.uint32]) -> None:
    """Fill the hash of each key."""
    base = address_of(keys.data)
    positions, sizes = keys.positions, keys.sizes
    for row in range(sizes.size):
        size, at = max(sizes[row], 0), base + positions[row]
        digest = SEED ^ size
        words_end = at + (size & ~3)
        while at < words_end:
            word = load_byte(at) | load_byte(at + 1) << 8 | load_byte(at + 2) << 16 | load_byte(at + 3) << 24
            word = word * MULTIPLIER & _MASK
            word = (word ^ word >> 24) * MULTIPLIER & _MASK
            digest = digest * MULTIPLIER & _MASK ^ word
            at += 4
        if size & 3:
            tail = 0
            for index in range(size & 3):
                tail |= load_byte(at + index) << 8 * index
            digest = (digest ^ tail) * MULTIPLIER & _MASK
        digest = (digest ^ digest >> 13) * MULTIPLIER & _MASK
        hashes[row] = digest ^ digest >> 15
