"""The kernels of `walk.py` compiled by numba: for workers of Spark on machines without a C compiler.

The source is the same. It gets pointers in place of arrays: numba would count references of arrays between functions,
and compare each index with zero, which takes longer than to read what is there.
"""

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from barnabas.wire.records import walk
from barnabas.wire.records.arrow_fields import Bytes, Numbers
from barnabas.wire.records.compiled import compiled, pointer_to
from barnabas.wire.records.compression import Buffer

register_jitable(walk._read_varint)  # noqa: SLF001 (parts of the kernels; so are those below)
for _part in (walk._scan_deltas, walk._scan_fields):  # noqa: SLF001
    register_jitable(forceinline=True)(_part)
_scan_records = compiled(walk.scan_records)
_count_headers = compiled(walk.count_headers)
_scan_headers = compiled(walk.scan_headers)


def scan_records_unlocked(
    data: Buffer, batches: Buffer, batches_count: int, width: int, *columns: Buffer
) -> tuple[int, int]:
    """See `walk`; so are the other functions."""
    longs = (_longs(column) for column in columns)
    return scan_in(np.frombuffer(data, np.uint8), _longs(batches), batches_count, width, *longs)


def _longs(numbers: Buffer) -> Numbers:
    return np.frombuffer(numbers, np.int64)


@compiled
def scan_in(
    data: Bytes,
    batches: Numbers,
    batches_count: int,
    width: int,
    starts: Numbers,
    ends: Numbers,
    offsets: Numbers,
    timestamps_ms: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
    value_positions: Numbers,
    value_sizes: Numbers,
) -> tuple[int, int]:
    return _scan_records(
        pointer_to(data),
        pointer_to(batches),
        batches_count,
        width,
        pointer_to(starts),
        pointer_to(ends),
        pointer_to(offsets),
        pointer_to(timestamps_ms),
        pointer_to(key_positions),
        pointer_to(key_sizes),
        pointer_to(value_positions),
        pointer_to(value_sizes),
    )


@compiled
def count_headers(
    data: Bytes, rows_count: int, starts: Numbers, ends: Numbers, offsets: NDArray[np.int32], validity: Bytes
) -> tuple[int, int]:
    return _count_headers(
        pointer_to(data),
        rows_count,
        pointer_to(starts),
        pointer_to(ends),
        pointer_to(offsets),
        pointer_to(validity),
    )


@compiled
def scan_headers(
    data: Bytes,
    rows_count: int,
    starts: Numbers,
    ends: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
    value_positions: Numbers,
    value_sizes: Numbers,
) -> int:
    return _scan_headers(
        pointer_to(data),
        rows_count,
        pointer_to(starts),
        pointer_to(ends),
        pointer_to(key_positions),
        pointer_to(key_sizes),
        pointer_to(value_positions),
        pointer_to(value_sizes),
    )
