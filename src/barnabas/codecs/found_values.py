"""The values that a kernel finds in many records, and Arrow arrays of them.

A level is a number of rows: of the records, or of the items of a list. A column has a value in each row of its level.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Rows = Integers | slice

#: For how many items of a list in each record there is room at first.
_ITEMS_OF_RECORD = 2


class ValueTables(NamedTuple):
    """What a kernel fills: arrays, and within the kernel pointers to their elements.

    The values of a column are in `numbers`, `lengths` and `is_valid` from its base on, one for each row of its level.
    """

    bases: Integers  #: of each column
    capacities: Integers  #: of each level, in rows
    counts: Integers  #: rows in use, of each level above 0
    numbers: Integers  #: numbers, their bits, or where bytes begin
    lengths: Integers  #: how many bytes or items there are
    is_valid: Bytes  #: 1 where there is a value


class ValueKernel(Protocol):
    """A compiled function that finds the values of records."""

    def __call__(
        self,
        data: Bytes,
        starts: Integers,
        ends: Integers,
        first_row: int,
        program: Any,
        levels: Integers,
        tables: ValueTables,
        is_read: Booleans,
    ) -> tuple[int, int]:
        """Return the number of records done, and the level that is full if not all are.

        :param data: Bytes of all records, which begin at `starts` and end at `ends`.
        :param starts: -1 for records that are not to be read.
        :param program: The tables of the schema.
        :param levels: Of each column.
        :param tables: `numbers`, `lengths` and `is_valid` are zero before the first call.
        :param is_read: Gets by record whether it was read.
        """


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
        capacities = np.full(levels_count, _ITEMS_OF_RECORD * records_count)
        capacities[0] = records_count
        bases, size = self._layout(capacities)
        self._tables = ValueTables(
            bases,
            capacities,
            np.zeros(levels_count, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.uint8),
        )

    def scan(
        self, kernel: ValueKernel, data: Bytes, starts: Integers, ends: Integers, program: Any
    ) -> Booleans:
        """Find the values of all records; return which records were read."""
        is_read = np.zeros(len(starts), bool)
        done = 0
        while done < len(starts):
            done, full_level = kernel(data, starts, ends, done, program, self._levels, self._tables, is_read)
            if full_level >= 0:
                self._grow(full_level)
        return is_read

    def _grow(self, level: int) -> None:
        """Make room for more rows of a level."""
        old = self._tables
        capacities = old.capacities.copy()
        capacities[level] *= 2
        bases, size = self._layout(capacities)

        def moved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            target = np.zeros(size, values.dtype)
            for at in np.flatnonzero(self._levels >= 0):
                used = old.counts[self._levels[at]] if self._levels[at] else capacities[0]
                target[bases[at] :][:used] = values[old.bases[at] :][:used]
            return target

        self._tables = ValueTables(
            bases, capacities, old.counts, moved(old.numbers), moved(old.lengths), moved(old.is_valid)
        )

    def all_rows(self, level: int) -> slice:
        """Return the rows of a level above 0: the kernel removes those of records that it does not accept."""
        return slice(0, int(self._tables.counts[level]))

    def column(self, at: int, rows: Rows) -> ColumnValues:
        """Return values of a column."""
        tables = self._tables
        values = slice(tables.bases[at], tables.bases[at] + tables.capacities[self._levels[at]])
        return ColumnValues(
            tables.is_valid[values][rows].view(bool),
            tables.numbers[values][rows],
            tables.lengths[values][rows],
        )

    def _layout(self, capacities: Integers) -> tuple[Integers, int]:
        """Return the bases of all columns, and the size of all values."""
        sizes = np.where(self._levels >= 0, capacities[self._levels], 0)
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
