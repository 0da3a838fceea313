"""The bytes of a column of binary values."""

from typing import NamedTuple

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


class ValueHeader(NamedTuple):
    """The bytes with which values begin, such as the framing of a schema registry."""

    content: bytes = b""
    free: range = range(0)  #: bytes that may have any value

    def plus(self, more: bytes) -> "ValueHeader":
        """Return the header with more bytes."""
        return self._replace(content=self.content + more)

    def bodies(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return where each value continues in the bytes of all, -1 for those that are null or begin otherwise."""
        data, starts, ends = binary_bounds(values)
        size = len(self.content)
        begins = values.is_valid().to_numpy(zero_copy_only=False) & (ends - starts >= size)
        compared = np.array([at for at in range(size) if at not in self.free], np.int64)
        expected = np.frombuffer(self.content, np.uint8)[compared]
        at = np.flatnonzero(begins)
        begins[at] = (data[starts[at, np.newaxis] + compared] == expected).all(axis=1)
        return np.where(begins, starts + size, -1)
