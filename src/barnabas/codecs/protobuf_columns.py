"""Protobuf messages as columns, without an object for each value.

What is not read here is left to the codec of single values, which says why.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.codecs import ReadRows
from barnabas.codecs.binary_column import ValueHeader, binary_bounds
from barnabas.codecs.found_values import (
    Booleans,
    Bytes,
    ColumnValues,
    FoundValues,
    Integers,
    Rows,
    arrow_array,
    bytes_array,
    list_array,
    number_array,
)
from barnabas.codecs.protobuf_program import ProtobufColumn, ProtobufProgram

_NANOS = 1_000_000_000
_MICROS = 1_000_000
_SECONDS_MAX = 2**63 // _MICROS - 1


class _Unreadable(Exception):
    """Some value must be read singly; it is not known which."""


class ProtobufColumnReader:
    """Reads values of one message type."""

    def __init__(self, program: ProtobufProgram, header: ValueHeader) -> None:
        self._program = program
        self._header = header

    def read(self, values: pa.Array) -> ReadRows | None:
        """Read the values that can be read; None if none can, because some have texts that are not UTF-8, unknown
        numbers of enums, or other contents that the kernel does not check.

        :param values: Binary.
        """
        # importing numba takes most of a second
        from barnabas.codecs.protobuf_scan_numba import scan_protobuf

        data, _, ends = binary_bounds(values)
        program = self._program
        found = FoundValues(program.levels, program.levels_count, len(values))
        is_read = found.scan(scan_protobuf, data, self._header.bodies(values), ends, program.tables)
        positions = np.flatnonzero(is_read)
        try:
            rows = _Arrays(found, data).message(program.root, positions, np.ones(len(positions), bool))
        except (pa.ArrowInvalid, _Unreadable):
            return None
        return ReadRows(rows, positions)


class _Arrays:
    """Makes Arrow arrays of values.

    Its methods raise pa.ArrowInvalid if a text is not UTF-8, and _Unreadable.
    """

    def __init__(self, found: FoundValues, data: Bytes) -> None:
        self._found = found
        self._data = data

    def message(self, column: ProtobufColumn, rows: Rows, is_valid: Booleans) -> pa.Array:
        """Return structs, null where `is_valid` is False."""
        is_set = [self._found.column(part.at, rows).is_valid for part in column.parts]
        for indexes in column.choices:
            if (np.sum([is_set[index] for index in indexes], axis=0) > 1).any():
                raise _Unreadable
        parts = []
        for part, part_is_set in zip(column.parts, is_set, strict=True):
            if part.required and (is_valid & ~part_is_set).any():
                raise _Unreadable
            parts.append(self._field(part, rows, part_is_set if part.nullable else np.ones_like(part_is_set)))
        return arrow_array(column.type, is_valid, children=parts)

    def _field(self, column: ProtobufColumn, rows: Rows, is_valid: Booleans) -> pa.Array:
        if pa.types.is_list(column.type) or pa.types.is_map(column.type):
            return self._repeated(column, rows, is_valid)
        if pa.types.is_struct(column.type):
            return self.message(column, rows, is_valid)
        if column.parts:
            return self._known_message(column, rows, is_valid)
        values = self._found.column(column.at, rows)._replace(is_valid=is_valid)
        if column.descriptor.enum_type is not None:
            return _enum_array(column.descriptor.enum_type, values)
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            return bytes_array(column.type, values, self._data)
        if pa.types.is_decimal(column.type):  # 64 bits without a sign
            words = np.stack([values.numbers, np.zeros_like(values.numbers)], axis=1)
            return arrow_array(column.type, is_valid, words)
        return number_array(column.type, values)

    def _repeated(self, column: ProtobufColumn, rows: Rows, is_valid: Booleans) -> pa.Array:
        lengths = self._found.column(column.at, rows).lengths
        items = self._found.all_rows(column.parts[0].level)
        every = np.ones(items.stop, bool)
        parts = [
            self._field(part, items, self._found.column(part.at, items).is_valid if part.nullable else every)
            for part in column.parts
        ]
        if pa.types.is_map(column.type):
            order = _entries_order(parts[0], lengths)
            parts = [part.take(order) for part in parts]
        return list_array(column.type, is_valid, lengths, parts)

    def _known_message(self, column: ProtobufColumn, rows: Rows, is_valid: Booleans) -> pa.Array:
        """Return a message that is a single value in rows: a time, or a wrapper."""
        kind = column.type
        if not pa.types.is_temporal(kind):
            return self._field(column.parts[0], rows, is_valid)
        seconds, nanos = (self._found.column(part.at, rows).numbers for part in column.parts)
        if (np.abs(seconds) > _SECONDS_MAX).any():
            raise _Unreadable
        if pa.types.is_timestamp(kind):
            is_right, micros = (nanos >= 0) & (nanos < _NANOS), nanos // 1_000
        else:  # rounded towards zero
            is_right = (seconds == 0) | (nanos == 0) | ((seconds < 0) == (nanos < 0))
            micros = np.where(nanos < 0, -(-nanos // 1_000), nanos // 1_000)
        if not is_right.all():
            raise _Unreadable
        return arrow_array(kind, is_valid, seconds * _MICROS + micros)


def _enum_array(descriptor: Any, values: ColumnValues) -> pa.Array:
    numbers = np.array(sorted(descriptor.values_by_number), np.int64)
    indexes = np.minimum(np.searchsorted(numbers, values.numbers), len(numbers) - 1)
    if (values.is_valid & (numbers[indexes] != values.numbers)).any():
        raise _Unreadable
    names = pa.array([descriptor.values_by_number[number].name for number in numbers.tolist()], pa.string())
    codes = pa.array(indexes.astype(np.int32), mask=~values.is_valid)
    return pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())


def _entries_order(keys: pa.Array, lengths: Integers) -> pa.Array:
    """Return the order of the entries of maps, by the keys of each.

    :raises _Unreadable: A map has a key twice.
    """
    owners = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    table = pa.table({"owner": owners, "key": keys})
    if len(table.group_by(["owner", "key"]).aggregate([])) != len(table):
        raise _Unreadable
    return pc.sort_indices(table, [("owner", "ascending"), ("key", "ascending")])
