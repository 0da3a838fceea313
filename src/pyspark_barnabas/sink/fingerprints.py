"""Computes a fingerprint of rows that does not depend on their order: the sum of their hashes. No IO.

It detects rows that moved between tasks, not forgeries: of a long value it hashes the size and a few words.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.wire.records.arrow_fields import fields_of
from pyspark_barnabas.sink.protocol import Fingerprint

MULTIPLIER = 0xC6A4A7935BD1E995
SHIFT = 47

Hashes: TypeAlias = npt.NDArray[np.uint64]


def fingerprint(keys: pa.Array | None, values: pa.Array) -> Fingerprint:
    """The fingerprint of rows with these keys and values; null counts as empty."""
    from pyspark_barnabas.sink import fingerprints_numba  # importing numba takes most of a second

    digest = fingerprints_numba.hash_fields(fields_of(values))
    if keys is not None:
        digest = _mixed(digest, fingerprints_numba.hash_fields(fields_of(keys)))
    return Fingerprint(len(values), int(digest.sum(dtype=np.uint64)))


def _mixed(digest: Hashes, word: Hashes) -> Hashes:
    word = word * np.uint64(MULTIPLIER)
    return (digest ^ word ^ word >> np.uint64(SHIFT)) * np.uint64(MULTIPLIER)
