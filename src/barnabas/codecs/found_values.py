"""The values that a kernel finds in many records, and Arrow arrays of them.

A level is a number of rows: of the records, or of the items of a list. A column has a value in each row of its level.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Rows = Integers | slice

#: For how many items of a list in each record there is room at first.
_ITEMS_OF_RECORD = 2


class ColumnValues(NamedTuple):
    """Values of a column in some rows."""

    is_valid: Booleans
    numbers: Integers  #: or the bits of numbers, or where bytes begin
    lengths: Integers  #: of bytes or lists


class FoundValues:
    """The tables that a kernel fills.

    :param levels: Of each column; -1 for one without values.
    :param records_count: The rows of level 0.
    """

    def __init__(self, levels: Integers, levels_count: int, records_count: int) -> None:
        self._levels = levels
        self.capacities = np.full(levels_count, _ITEMS_OF_RECORD * records_count)  #: of each level, in rows
        self.capacities[0] = records_count
        self.counts = np.zeros(levels_count, np.int64)  #: rows in use, of each level above 0
        self.bases, size = self._layout()  #: where the values of each column begin
        self.numbers, self.lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.is_valid = np.zeros(size, np.uint8)

    def grow(self, level: int) -> None:
        """Make room for more rows of a level."""
        old = self.bases
        self.capacities[level] *= 2
        self.bases, size = self._layout()

        def moved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            target = np.zeros(size, values.dtype)
            for at in np.flatnonzero(self._levels >= 0):
                used = self.counts[self._levels[at]] if self._levels[at] else self.capacities[0]
                target[self.bases[at] :][:used] = values[old[at] :][:used]
            return target

        self.numbers, self.lengths = moved(self.numbers), moved(self.lengths)
        self.is_valid = moved(self.is_valid)

    def all_rows(self, level: int) -> slice:
        """Return the rows of a level above 0: the kernel removes those of records that it does not accept."""
        return slice(0, int(self.counts[level]))

    def column(self, at: int, rows: Rows) -> ColumnValues:
        """Return values of a column."""
        values = slice(self.bases[at], self.bases[at] + self.capacities[self._levels[at]])
        return ColumnValues(
            self.is_valid[values][rows].view(bool), self.numbers[values][rows], self.lengths[values][rows]
        )

    def _layout(self) -> tuple[Integers, int]:
        """Return the bases of all columns, and the size of all values."""
        sizes = np.where(self._levels >= 0, self.capacities[self._levels], 0)
        return np.cumsum(sizes) - sizes, int(sizes.sum())


def arrow_array(
    kind: pa.DataType, is_valid: Booleans, *buffers: npt.NDArray[Any], children: Sequence[pa.Array] = ()
) -> pa.Array:
    """Return an array of the given buffers; all buffers but that of the valid rows are as Arrow has them."""
    validity = None if is_valid.all() else pa.array(is_valid).buffers()[1]
    all_buffers = [validity, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(kind, len(is_valid), all_buffers, children=list(children))


def list_array(
    kind: pa.DataType, is_valid: Booleans, lengths: Integers, parts: Sequence[pa.Array]
) -> pa.Array:
    """Return a list of one part, or a map of two."""
    children = parts
    if pa.types.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        children = [arrow_array(entry, np.ones(len(parts[0]), bool), children=parts)]
    return arrow_array(kind, is_valid, _offsets(lengths), children=children)


def bytes_array(kind: pa.DataType, values: ColumnValues, data: Bytes) -> pa.Array:
    """Return an array of strings or bytes.

    :raises pa.ArrowInvalid: A string is not UTF-8.
    """
    # importing numba takes most of a second
    from barnabas.codecs.scanning_numba import gather_bytes

    offsets = _offsets(values.lengths)
    target = np.empty(int(offsets[-1]), np.uint8)
    gather_bytes(data, values.numbers, values.lengths, target)
    return arrow_array(pa.binary(), values.is_valid, offsets, target).cast(kind)


def number_array(kind: pa.DataType, values: ColumnValues) -> pa.Array:
    """Return an array of numbers, booleans or times, or of decimals, whose numbers are unscaled."""
    if pa.types.is_boolean(kind):
        return pa.array(values.numbers != 0, mask=~values.is_valid)
    if pa.types.is_decimal(kind):
        words = np.stack([values.numbers, values.numbers >> 63], axis=1)
        return arrow_array(kind, values.is_valid, words)
    numbers = values.numbers.astype(np.int32) if kind.bit_width == 32 else values.numbers
    return arrow_array(kind, values.is_valid, np.ascontiguousarray(numbers))


def _offsets(lengths: Integers) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
