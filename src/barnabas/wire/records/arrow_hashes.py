"""Hashes a column of keys for partitioning."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from barnabas.wire.records.arrow_fields import fields_of

Words: TypeAlias = NDArray[np.uint32]


def murmur2(keys: pa.Array) -> Words:
    """Return the hash of `client.producer.partitioner` for all keys; null hashes like an empty key."""
    from barnabas.wire.records import arrow_hashes_numba  # importing numba takes most of a second

    return arrow_hashes_numba.hash_fields(fields_of(keys))
