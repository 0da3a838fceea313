"""Avro records as columns, without an object for each value.

What is not read here is left to the codec of single values, which says why.
"""

import numpy as np
import pyarrow as pa

from barnabas.codecs import ReadRows
from barnabas.codecs.avro_program import AvroColumn, AvroProgram
from barnabas.codecs.binary_column import ValueHeader, binary_bounds
from barnabas.codecs.found_values import (
    Bytes,
    FoundValues,
    Rows,
    arrow_array,
    bytes_array,
    list_array,
    number_array,
)


class AvroColumnReader:
    """Reads values of one schema."""

    def __init__(self, program: AvroProgram, header: ValueHeader) -> None:
        self._program = program
        self._header = header

    def read(self, values: pa.Array) -> ReadRows | None:
        """Read the values that can be read; None if none can, because some text is not UTF-8.

        :param values: Binary.
        """
        # importing numba takes most of a second
        from barnabas.codecs.avro_scan_numba import scan_avro

        data, _, ends = binary_bounds(values)
        program = self._program
        found = FoundValues(program.levels, program.levels_count, len(values))
        is_read = found.scan(scan_avro, data, self._header.bodies(values), ends, program.tables)
        positions = np.flatnonzero(is_read)
        try:
            rows = _array(program.root, found, positions, data)
        except pa.ArrowInvalid:
            return None
        return ReadRows(rows, positions)


def _array(column: AvroColumn, found: FoundValues, rows: Rows, data: Bytes) -> pa.Array:
    """Return an array of a column's values in some rows of its level.

    :raises pa.ArrowInvalid: A text is not UTF-8.
    """
    kind, values = column.type, found.column(column.at, rows)
    if pa.types.is_struct(kind):
        parts = [_array(part, found, rows, data) for part in column.parts]
        return arrow_array(kind, values.is_valid, children=parts)
    if column.parts:
        items = found.all_rows(column.parts[0].level)
        parts = [_array(part, found, items, data) for part in column.parts]
        return list_array(kind, values.is_valid, values.lengths, parts)
    if column.symbols:
        indexes = pa.array(values.numbers.astype(np.int32), mask=~values.is_valid)
        return pa.DictionaryArray.from_arrays(indexes, pa.array(column.symbols)).cast(kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return bytes_array(kind, values, data)
    if column.factor != 1:
        values = values._replace(numbers=values.numbers * column.factor)
    return number_array(kind, values)
