"""A column of values in Confluent's framing."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.codecs.binary_column import binary_bounds
from barnabas.registry.codecs.framing import HEADER_BYTES

_ID_WEIGHTS = np.array([1 << 24, 1 << 16, 1 << 8, 1])
_ID_MAX = 2**31 - 1

Integers = npt.NDArray[np.int64]


class FramedColumn:
    """The schema ids of a column of binary values, read without a loop over the values."""

    def __init__(self, values: pa.Array) -> None:
        self._data, self._starts, ends = binary_bounds(values)
        self._lengths = ends - self._starts
        is_valid = values.is_valid().to_numpy(zero_copy_only=False)
        #: the schema id of each value, -1 for those that are null or not framed
        self.ids: Integers = np.full(len(values), -1)
        long = np.flatnonzero(is_valid & (self._lengths >= HEADER_BYTES))
        headers = self._data[self._starts[long, np.newaxis] + np.arange(HEADER_BYTES)]
        ids = headers[:, 1:].astype(np.int64) @ _ID_WEIGHTS
        self.ids[long] = np.where((headers[:, 0] == 0) & (ids <= _ID_MAX), ids, -1)
        #: positions of values that are neither null nor framed
        self.unframed: Integers = np.flatnonzero(is_valid & (self.ids < 0))

    def schema_ids(self) -> pa.Array:
        """Return the ids as int32, null for values that are null or not framed."""
        return pa.array(self.ids, pa.int32(), mask=self.ids < 0)

    def by_id(self) -> Iterator[tuple[int, Integers]]:
        """Yield each schema id with the positions of its values, in order."""
        framed = np.flatnonzero(self.ids >= 0)
        order = framed[np.argsort(self.ids[framed], kind="stable")]
        ids, starts, counts = np.unique(self.ids[order], return_index=True, return_counts=True)
        for schema_id, start, count in zip(ids, starts, counts, strict=True):
            yield int(schema_id), order[start : start + count]

    def begins_with_zero(self, positions: Integers) -> npt.NDArray[np.bool_]:
        """Return for some framed values whether a byte 0 follows the schema id."""
        bodies = self._starts[positions] + HEADER_BYTES
        found = np.zeros(len(positions), bool)
        longer = self._lengths[positions] > HEADER_BYTES
        found[longer] = self._data[bodies[longer]] == 0
        return found
