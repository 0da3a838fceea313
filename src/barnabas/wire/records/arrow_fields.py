"""Locates the fields of Arrow's binary and string columns."""

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]

_NOTHING = np.frombuffer(bytes(1), np.uint8)


class Fields(NamedTuple):
    """The fields of a column; a negative size is null."""

    data: Bytes
    positions: Numbers
    sizes: Numbers


def fields_of(column: pa.Array) -> Fields:
    """Return the fields of a binary or string column, or of their large variants; bytes are not copied."""
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    assert is_large or pa.types.is_binary(column.type) or pa.types.is_string(column.type), column.type
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = offsets_of(offsets_buffer, column, is_large=is_large)
    sizes = np.diff(offsets)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    data = np.frombuffer(memoryview(data_buffer).toreadonly(), np.uint8) if data_buffer else _NOTHING
    return Fields(data, offsets[:-1], sizes)


def no_fields(count: int) -> Fields:
    """Return a column of nulls."""
    return Fields(_NOTHING, np.zeros(count, np.int64), np.full(count, -1))


def offsets_of(buffer: pa.Buffer, column: pa.Array, *, is_large: bool) -> Numbers:
    """Return the offsets of a column, one more than it has rows."""
    if not len(column):
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(buffer, np.int64 if is_large else np.int32)
    return offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
