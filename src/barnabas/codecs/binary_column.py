"""The bytes of a column of binary values."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def binary_bounds(
    values: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes of all values, and where each begins and ends in them.

    :param values: Binary or large binary; may be a slice.
    """
    _, offsets, data = values.buffers()
    size = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = np.frombuffer(offsets, size) if len(values) else np.zeros(1, size)
    bounds = ends[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(b"" if data is None else data, np.uint8), bounds[:-1], bounds[1:]


def begins_with(values: pa.Array, header: bytes) -> npt.NDArray[np.bool_]:
    """Return which values are not null and begin with the header."""
    found: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False).copy()
    if header:
        data, starts, ends = binary_bounds(values)
        found &= ends - starts >= len(header)
        headers = data[starts[found, np.newaxis] + np.arange(len(header))]
        found[found] = (headers == np.frombuffer(header, np.uint8)).all(axis=1)
    return found
