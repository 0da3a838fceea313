"""Avro records as columns, without an object for each value.

What is not read here is left to the codec of single values, which says why.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.codecs import ReadRows
from barnabas.codecs.avro_program import Column, Instruction, Program
from barnabas.codecs.binary_column import begins_with, binary_bounds

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Rows = Integers | slice

#: For how many items of a list in each record there is room at first.
_ITEMS_OF_RECORD = 2


class AvroColumnReader:
    """Reads values of one schema."""

    def __init__(self, program: Program, header: bytes) -> None:
        """:param header: What each value begins with."""
        self._program = program
        self._header = header

    def read(self, values: pa.Array) -> ReadRows | None:
        """Read the values that can be read; None if none can, because some text is not UTF-8.

        :param values: Binary.
        """
        data, starts, ends = binary_bounds(values)
        has_header = begins_with(values, self._header)
        bodies = np.where(has_header, starts + len(self._header), ends)
        found = _FoundValues(self._program, data, len(values))
        positions = np.flatnonzero(found.scan(bodies, ends))  # no record is empty
        try:
            rows = found.array(self._program.root, positions)
        except pa.ArrowInvalid:
            return None
        return ReadRows(rows, positions)


class _FoundValues:
    """What the kernel finds in records, by instruction of the program and row of its level."""

    def __init__(self, program: Program, data: npt.NDArray[np.uint8], records_count: int) -> None:
        self._program = program
        self._data = data
        self._levels = program.instructions[:, Instruction._fields.index("level")]
        self._capacities = np.full(program.levels_count, _ITEMS_OF_RECORD * records_count)
        self._capacities[0] = records_count
        self._counts = np.zeros(program.levels_count, np.int64)
        self._bases, size = self._layout()
        self._numbers, self._lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._is_valid = np.zeros(size, np.uint8)

    def scan(self, starts: Integers, ends: Integers) -> Booleans:
        """Find the values of all records; return which records were read."""
        # importing numba takes most of a second
        from barnabas.codecs.avro_scan_numba import scan_values

        is_read = np.zeros(len(starts), bool)
        done = 0
        while done < len(starts):
            done, full_level = scan_values(
                self._data,
                starts,
                ends,
                done,
                self._program.instructions,
                self._program.targets,
                self._bases,
                self._capacities,
                self._counts,
                self._numbers,
                self._lengths,
                self._is_valid,
                is_read,
            )
            if full_level >= 0:
                self._grow(full_level)
        return is_read

    def _layout(self) -> tuple[Integers, int]:
        """Return the bases of all instructions, and the size of all values."""
        sizes = np.where(self._levels >= 0, self._capacities[self._levels], 0)
        return np.cumsum(sizes) - sizes, int(sizes.sum())

    def _grow(self, level: int) -> None:
        old = self._bases
        self._capacities[level] *= 2
        self._bases, size = self._layout()

        def moved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            target = np.zeros(size, values.dtype)
            for at in np.flatnonzero(self._levels >= 0):
                used = self._counts[self._levels[at]] if self._levels[at] else self._capacities[0]
                target[self._bases[at] :][:used] = values[old[at] :][:used]
            return target

        self._numbers, self._lengths = moved(self._numbers), moved(self._lengths)
        self._is_valid = moved(self._is_valid)

    def array(self, column: Column, rows: Rows) -> pa.Array:
        """Return an array of the values in these rows of its level.

        :raises pa.ArrowInvalid: A text is not UTF-8.
        """
        start = self._bases[column.at]
        values = slice(start, start + self._capacities[column.level])
        is_valid: Booleans = self._is_valid[values][rows].view(bool)
        numbers: Integers = self._numbers[values][rows]
        lengths: Integers = self._lengths[values][rows]
        kind = column.type
        if pa.types.is_nested(kind):
            return self._nested(column, rows, is_valid, lengths)
        if column.symbols:
            indexes = pa.array(numbers.astype(np.int32), mask=~is_valid)
            return pa.DictionaryArray.from_arrays(indexes, pa.array(column.symbols)).cast(kind)
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            offsets, data = self._gathered(numbers, lengths)
            return _array(pa.binary(), is_valid, offsets, data).cast(kind)
        if pa.types.is_boolean(kind):
            return pa.array(numbers != 0, mask=~is_valid)
        if pa.types.is_decimal(kind):
            return _array(kind, is_valid, np.stack([numbers, numbers >> 63], axis=1))
        if kind.bit_width == 32:
            return _array(kind, is_valid, numbers.astype(np.int32))
        return _array(kind, is_valid, numbers if column.factor == 1 else numbers * column.factor)

    def _nested(self, column: Column, rows: Rows, is_valid: Booleans, lengths: Integers) -> pa.Array:
        if pa.types.is_struct(column.type):
            parts = [self.array(part, rows) for part in column.parts]
            return _array(column.type, is_valid, children=parts)
        items_count = int(self._counts[column.parts[0].level])  # those of other records were removed
        parts = [self.array(part, slice(0, items_count)) for part in column.parts]
        if pa.types.is_map(column.type):
            entry = pa.struct([column.type.key_field, column.type.item_field])
            parts = [_array(entry, np.ones(items_count, bool), children=parts)]
        return _array(column.type, is_valid, _offsets(lengths), children=parts)

    def _gathered(
        self, starts: Integers, lengths: Integers
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        from barnabas.codecs.avro_scan_numba import gather_bytes

        offsets = _offsets(lengths)
        target = np.empty(int(offsets[-1]), np.uint8)
        gather_bytes(self._data, starts, lengths, target)
        return offsets, target


def _offsets(lengths: Integers) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _array(
    kind: pa.DataType, is_valid: Booleans, *buffers: npt.NDArray[Any], children: Sequence[pa.Array] = ()
) -> pa.Array:
    validity = None if is_valid.all() else pa.array(is_valid).buffers()[1]
    all_buffers = [validity, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(kind, len(is_valid), all_buffers, children=list(children))
