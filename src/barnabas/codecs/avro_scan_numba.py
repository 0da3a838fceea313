"""Finds the values in many Avro records of one schema, by numba.

It accepts no record that a reader of single values would refuse or read differently; it may refuse odd ones.
"""

from typing import NamedTuple

import numpy as np

from barnabas.codecs.avro_program import AvroInstruction, AvroOperation, AvroTables
from barnabas.codecs.found_values import ValueTables
from barnabas.codecs.scanning_numba import (
    Array,
    Pointer,
    clear_record,
    load_little_endian,
    pointers_to,
    read_varint,
    zigzag,
)
from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, load_byte, pointer_to

NUMBER, BYTES, FIXED, BITS, DECIMAL, FIXED_DECIMAL, RECORD, LIST, MAP, NEXT_ITEM, UNION, JUMP = map(
    int, AvroOperation
)
#: An instruction is that many numbers.
WIDTH = len(AvroInstruction._fields)
OPERATION, LEVEL, NULL_BRANCH, SIZE, BRANCHES_COUNT, LOW, HIGH, INNER, NEXT = range(WIDTH)

_WORD_BYTES = 8
#: Keys of more entries are not compared with each other.
_ENTRIES_MAX = 64


@compiled_inline
def _read_long(position: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint of 64 bits and the address behind it, or -1 as the address."""
    value, position = read_varint(position, end)
    return zigzag(value), position


@compiled_inline
def _read_items_count(position: int, end: int) -> tuple[int, int]:
    """Return the number of items in a block and the address behind it, or -1 as the address."""
    count, position = _read_long(position, end)
    if count < 0 and position >= 0:
        count = -count
        _, position = _read_long(position, end)  # the size of the block
    if count < 0 or count > end - position:  # each item has a byte
        position = -1
    return count, position


@compiled_inline
def _load_big_endian(position: int, size: int) -> tuple[int, bool]:
    """Return a number in two's complement, and whether it has no more than 64 bits."""
    is_negative = size > 0 and load_byte(position) >= 0x80
    number, fits, sign_byte = (-1, True, 0xFF) if is_negative else (0, True, 0)
    for index in range(size):
        byte = load_byte(position + index)
        if index < size - _WORD_BYTES and byte != sign_byte:
            fits = False
        number = number << 8 | byte
    return number, fits and (number < 0) == is_negative


@compiled_inline
def _read_value(
    operation: int, size: int, low: int, high: int, position: int, end: int
) -> tuple[int, int, int]:
    """Return a number, or the address of bytes, then how many bytes there are, and the address behind the value."""
    if operation == NUMBER:
        number, position = _read_long(position, end)
        return number, 0, position if low <= number <= high else -1
    if operation in (BYTES, DECIMAL):
        size, position = _read_long(position, end)
    if position < 0 or size < 0 or size > end - position:
        return 0, 0, -1
    if operation == BITS:
        return load_little_endian(position, size), 0, position + size
    if operation in (BYTES, FIXED):
        return position, size, position + size
    number, fits = _load_big_endian(position, size)
    return number, 0, position + size if fits and low <= number <= high else -1


@compiled
def _has_equal_keys(base: int, starts: Pointer, sizes: Pointer, first: int, last: int) -> bool:
    """Whether some keys of a map are equal, or are too many to be compared."""
    if last - first > _ENTRIES_MAX:
        return True
    for index in range(first, last):
        for earlier in range(first, index):
            if sizes[index] == sizes[earlier]:
                at = 0
                while at < sizes[index] and load_byte(base + starts[index] + at) == load_byte(
                    base + starts[earlier] + at
                ):
                    at += 1
                if at == sizes[index]:
                    return True
    return False


@compiled
def scan_avro(
    data: Array,
    starts: Array,
    ends: Array,
    first_row: int,
    program: AvroTables,
    levels: Array,
    tables: ValueTables,
    is_read: Array,
) -> tuple[int, int]:
    """Find the values of Avro records; see `ValueKernel`."""
    base, counts = address_of(data), tables.counts
    rows, left, saved = np.zeros_like(counts), np.zeros_like(counts), np.zeros_like(counts)
    state = _State(pointer_to(rows), pointer_to(left))
    code = AvroTables(pointer_to(program.instructions), pointer_to(program.targets))
    for row in range(first_row, len(starts)):
        if starts[row] < 0:
            continue
        for level in range(1, len(counts)):
            saved[level] = counts[level]
        rows[0] = row
        position, end = base + starts[row], base + ends[row]
        position, full_level = _scan_record(
            base, position, end, len(program.instructions), code, pointers_to(tables), state
        )
        is_read[row] = position == end
        if not is_read[row]:
            clear_record(levels, row, saved, tables)
            if full_level >= 0:
                return row, full_level
    return len(starts), -1


class _State(NamedTuple):
    rows: Pointer  #: the current row of each level
    left: Pointer  #: items of the current block, by level


@compiled_inline
def _scan_record(
    base: int,
    position: int,
    end: int,
    instructions_count: int,
    program: AvroTables,
    tables: ValueTables,
    state: _State,
) -> tuple[int, int]:
    """Find the values of a record; return the address behind it, or -1, and the level that is full, or -1."""
    code, at = program.instructions, 0
    while at < instructions_count:
        here = at * WIDTH
        operation = code[here + OPERATION]
        if operation == JUMP:
            at = code[here + NEXT]
            continue
        if operation == NEXT_ITEM:
            at, position, full_level = _next_item(at, base, position, end, code, tables, state)
            if position < 0:
                return -1, full_level
            continue
        null_branch = code[here + NULL_BRANCH]
        branch, position = _read_branch(operation, null_branch, code[here + BRANCHES_COUNT], position, end)
        if position < 0:
            return -1, -1
        if null_branch >= 0 and branch == null_branch:
            at = code[here + NEXT]
            continue
        index = tables.bases[at] + state.rows[code[here + LEVEL]]
        tables.is_valid[index] = 1
        if operation < RECORD:
            low, high = code[here + LOW], code[here + HIGH]
            number, length, position = _read_value(operation, code[here + SIZE], low, high, position, end)
            if position < 0:
                return -1, -1
            tables.numbers[index] = number - base if operation in (BYTES, FIXED) else number
            tables.lengths[index] = length
        elif operation == UNION:
            at = program.targets[code[here + INNER] + branch]
            continue
        elif operation != RECORD:
            tables.numbers[index] = tables.counts[code[here + INNER]]
            state.left[code[here + INNER]] = 0
        at += 1
    return position, -1


@compiled_inline
def _read_branch(
    operation: int, null_branch: int, branches_count: int, position: int, end: int
) -> tuple[int, int]:
    """Return the branch of a union and the address behind it, or -1 as the address."""
    if null_branch < 0 and operation != UNION:
        return 0, position
    branch, position = _read_long(position, end)
    return branch, position if 0 <= branch < branches_count else -1


@compiled_inline
def _next_item(
    at: int, base: int, position: int, end: int, code: Pointer, tables: ValueTables, state: _State
) -> tuple[int, int, int]:
    """Begin the next item of a list or map, or end it; return the instruction and the address that follow.

    The address is -1 if the items cannot be read; then the last number is the level that is full, or -1.
    """
    here = at * WIDTH
    owner = code[here + INNER]
    instruction = owner * WIDTH
    level = code[instruction + INNER]
    index = tables.bases[owner] + state.rows[code[instruction + LEVEL]]
    counts, left = tables.counts, state.left
    if left[level] == 0:
        left[level], position = _read_items_count(position, end)
        if position < 0:
            return at, -1, -1
        if counts[level] + left[level] > tables.capacities[level]:
            return at, -1, level
    if left[level] > 0:
        left[level] -= 1
        state.rows[level] = counts[level]
        counts[level] += 1
        return at + 1, position, -1
    tables.lengths[index] = counts[level] - tables.numbers[index]
    if code[instruction + OPERATION] == MAP:
        keys = tables.bases[at + 1]
        first, last = keys + tables.numbers[index], keys + counts[level]
        if _has_equal_keys(base, tables.numbers, tables.lengths, first, last):
            position = -1
    return code[here + NEXT], position, -1
