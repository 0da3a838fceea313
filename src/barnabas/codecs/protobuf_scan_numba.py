"""Finds the values in many Protobuf messages of one type, by numba.

It accepts no message that Protobuf's own parser would refuse or read differently; it may refuse odd ones.
"""

from typing import Any

import numpy as np

from barnabas.codecs.found_values import ValueTables
from barnabas.codecs.protobuf_program import (
    DEPTH_MAX,
    FieldRow,
    MessageRow,
    ProtobufOperation,
    ProtobufTables,
)
from barnabas.codecs.scanning_numba import (
    Array,
    Pointer,
    clear_record,
    load_little_endian,
    pointers_to,
    read_varint,
    zigzag,
)
from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, pointer_to

(
    VARINT,
    SIGNED_32,
    UNSIGNED_32,
    ZIGZAG,
    ZIGZAG_32,
    BOOLEAN,
    FIXED_64,
    SIGNED_FIXED_32,
    UNSIGNED_FIXED_32,
    BYTES,
    MESSAGE,
) = map(int, ProtobufOperation)
FIELD_WIDTH, MESSAGE_WIDTH = len(FieldRow._fields), len(MessageRow._fields)
NUMBER, OPERATION, COLUMN, LEVEL, LIST_COLUMN, LIST_LEVEL, INNER_MESSAGE = range(FIELD_WIDTH)
FIRST_FIELD, FIELDS_COUNT, IS_ENTRY = range(MESSAGE_WIDTH)

_WIRE_VARINT, _WIRE_64, _WIRE_BYTES, _WIRE_32 = 0, 1, 2, 5
_WIRE_BITS = 3
_TAG_BYTES_MAX = 5
_HALF = 0xFFFFFFFF
_SIGN_OF_HALF = 1 << 31
_OUTER_MAX = DEPTH_MAX + 1


@compiled_inline
def _signed_half(value: int) -> int:
    half = value & _HALF
    return half - ((half & _SIGN_OF_HALF) << 1)


@compiled_inline
def _wire_type(operation: int) -> int:
    if operation >= BYTES:
        return _WIRE_BYTES
    if operation <= BOOLEAN:
        return _WIRE_VARINT
    return _WIRE_64 if operation == FIXED_64 else _WIRE_32


@compiled_inline
def _read_size(position: int, end: int) -> tuple[int, int]:
    """Return how many bytes follow, and the address behind this number, or -1 as the address."""
    size, position = read_varint(position, end)
    return size, position if 0 <= size <= end - position else -1


@compiled_inline
def _read_tag(position: int, end: int) -> tuple[int, int, int]:
    """Return the number and wire type of a field, and the address behind them, or -1 as the address."""
    tag, value = read_varint(position, end)
    if value - position > _TAG_BYTES_MAX or not 1 << _WIRE_BITS <= tag <= _HALF:
        value = -1
    return tag >> _WIRE_BITS, tag & ((1 << _WIRE_BITS) - 1), value


@compiled_inline
def _read_value(operation: int, position: int, end: int) -> tuple[int, int, int]:
    """Return a number, or the address of bytes, then how many bytes there are, and the address behind the value."""
    if operation >= BYTES:
        size, position = _read_size(position, end)
        return position, size, -1 if position < 0 else position + size
    if operation > BOOLEAN:
        size = 8 if operation == FIXED_64 else 4
        if size > end - position:
            return 0, 0, -1
        bits = load_little_endian(position, size)
        return _signed_half(bits) if operation == SIGNED_FIXED_32 else bits, 0, position + size
    value, position = read_varint(position, end)
    if operation == SIGNED_32:
        value = _signed_half(value)
    elif operation == UNSIGNED_32:
        value &= _HALF
    elif operation == ZIGZAG:
        value = zigzag(value)
    elif operation == ZIGZAG_32:
        value = zigzag(value & _HALF)
    elif operation == BOOLEAN:
        value = 1 if value != 0 else 0
    return value, 0, position


@compiled_inline
def _skip_value(wire_type: int, position: int, end: int) -> int:
    """Return the address behind the value of an unknown field, or -1."""
    if wire_type == _WIRE_VARINT:
        _, position = read_varint(position, end)
        return position
    if wire_type == _WIRE_BYTES:
        size, position = _read_size(position, end)
        return -1 if position < 0 else position + size
    if wire_type not in (_WIRE_64, _WIRE_32):  # groups
        return -1
    size = 8 if wire_type == _WIRE_64 else 4
    return position + size if size <= end - position else -1


@compiled_inline
def _find_field(program: ProtobufTables, message: int, number: int, expected: int) -> Any:
    """Return the field of a number in a message, or -1; it is often `expected`, counted from the message's first."""
    first = program.messages[message * MESSAGE_WIDTH + FIRST_FIELD]
    count = program.messages[message * MESSAGE_WIDTH + FIELDS_COUNT]
    for step in range(count):
        index = expected + step
        if index >= count:
            index -= count
        if program.fields[(first + index) * FIELD_WIDTH + NUMBER] == number:
            return first + index
    return -1


@compiled_inline
def _row_of(here: int, fields: Pointer, tables: ValueTables, rows: Pointer) -> Any:
    """Return the row of a value, a new one for a repeated field, or -1 if its level is full."""
    level, list_column = fields[here + LEVEL], fields[here + LIST_COLUMN]
    if list_column >= 0:
        if tables.counts[level] == tables.capacities[level]:
            return -1
        tables.lengths[tables.bases[list_column] + rows[fields[here + LIST_LEVEL]]] += 1
        rows[level] = tables.counts[level]
        tables.counts[level] += 1
    return rows[level]


@compiled_inline
def _scan_field(
    base: int,
    here: int,
    wire_type: int,
    position: int,
    end: int,
    fields: Pointer,
    tables: ValueTables,
    rows: Pointer,
) -> tuple[int, int]:
    """Find the values of a field; return the address behind them, or -1, and the level that is full, or -1.

    For a message, the address and the other number are where it begins and ends.
    """
    operation = fields[here + OPERATION]
    is_packed = wire_type == _WIRE_BYTES and operation < BYTES and fields[here + LIST_COLUMN] >= 0
    last = end
    if is_packed:
        size, position = _read_size(position, end)
        last = position + size
    elif wire_type != _wire_type(operation):
        position = -1
    if position < 0 or (is_packed and position == last):
        return position, -1
    while True:
        row = _row_of(here, fields, tables, rows)
        if row < 0:
            return -1, fields[here + LEVEL]
        index = tables.bases[fields[here + COLUMN]] + row
        if operation == MESSAGE and tables.is_valid[index] != 0:  # messages would be merged
            return -1, -1
        number, size, position = _read_value(operation, position, last)
        if position < 0:
            return -1, -1
        tables.is_valid[index] = 1
        if operation == MESSAGE:
            return number, position
        tables.numbers[index] = number - base if operation == BYTES else number
        tables.lengths[index] = size
        if not is_packed or position == last:
            return position, -1


@compiled_inline
def _scan_message(
    base: int,
    position: int,
    end: int,
    program: ProtobufTables,
    tables: ValueTables,
    rows: Pointer,
    outer: Pointer,
) -> tuple[int, int]:
    """Find the values of a message; return the address behind it, or -1, and the level that is full, or -1.

    :param rows: The current row of each level.
    :param outer: Gets the end and the number of each message around the current one.
    """
    message, depth, expected = 0, 0, 0
    while True:
        while position == end:
            if depth == 0:
                return position, -1
            depth -= 1
            end, message, expected = outer[2 * depth], outer[2 * depth + 1], 0
        number, wire_type, position = _read_tag(position, end)
        if position < 0:
            return -1, -1
        field = _find_field(program, message, number, expected)
        if field < 0:
            position = _skip_value(wire_type, position, end)
            if position < 0 or program.messages[message * MESSAGE_WIDTH + IS_ENTRY] != 0:
                return -1, -1
            continue
        expected = field - program.messages[message * MESSAGE_WIDTH + FIRST_FIELD]
        here = field * FIELD_WIDTH
        position, other = _scan_field(base, here, wire_type, position, end, program.fields, tables, rows)
        if position < 0:
            return -1, other
        if program.fields[here + OPERATION] == MESSAGE:
            outer[2 * depth], outer[2 * depth + 1] = end, message
            depth += 1
            end, message, expected = other, program.fields[here + INNER_MESSAGE], 0


@compiled
def scan_protobuf(
    data: Array,
    starts: Array,
    ends: Array,
    first_row: int,
    program: ProtobufTables,
    levels: Array,
    tables: ValueTables,
    is_read: Array,
) -> tuple[int, int]:
    """Find the values of Protobuf messages; see `ValueKernel`."""
    base, counts = address_of(data), tables.counts
    rows, saved, outer = np.zeros_like(counts), np.zeros_like(counts), np.zeros(2 * _OUTER_MAX, np.int64)
    schema = ProtobufTables(pointer_to(program.fields), pointer_to(program.messages))
    for row in range(first_row, len(starts)):
        if starts[row] < 0:
            continue
        for level in range(1, len(counts)):
            saved[level] = counts[level]
        rows[0] = row
        position, end = base + starts[row], base + ends[row]
        position, full_level = _scan_message(
            base, position, end, schema, pointers_to(tables), pointer_to(rows), pointer_to(outer)
        )
        is_read[row] = position == end
        if not is_read[row]:
            clear_record(levels, row, saved, tables)
            if full_level >= 0:
                return row, full_level
    return len(starts), -1
