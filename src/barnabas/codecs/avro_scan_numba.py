"""Finds the values in many Avro records of one schema, by numba.

It accepts no record that a reader of single values would refuse or read differently; it may refuse odd ones.
"""

import numpy as np

from barnabas.codecs.avro_program import AvroInstruction, AvroOperation
from barnabas.codecs.scanning_numba import (
    Array,
    Pointer,
    clear_record,
    load_little_endian,
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
def scan_values(
    data: Array,
    starts: Array,
    ends: Array,
    first_row: int,
    program: Array,
    targets: Array,
    bases: Array,
    capacities: Array,
    counts: Array,
    numbers: Array,
    lengths: Array,
    is_valid: Array,
    is_read: Array,
) -> tuple[int, int]:
    """Find the values of records; return the number of records done, and the level that is full if not all are.

    The values of an instruction are in `numbers`, `lengths` and `is_valid` from its base on, one for each row of its
    level. Rows of level 0 are the records, also those that are not read.

    :param data: Bytes of all records, which begin at `starts` and end at `ends`; those that begin at -1 are not read.
    :param program: Of `AvroInstruction`.
    :param targets: Of branches.
    :param bases: Of each instruction; `capacities` are of each level, in rows.
    :param counts: Rows of each level above 0 that are in use; updated.
    :param numbers: Gets the number, its bits, or where bytes or items begin.
    :param lengths: Gets how many bytes or items there are; zero before the first call.
    :param is_valid: Gets 1 if there is a value; 0 before the first call.
    :param is_read: Gets by record whether it is one, from its first to its last byte.
    """
    base = address_of(data)
    rows, left, saved = np.zeros_like(counts), np.zeros_like(counts), np.zeros_like(counts)
    for row in range(first_row, len(starts)):
        if starts[row] < 0:
            continue
        for level in range(1, len(counts)):
            saved[level] = counts[level]
        rows[0] = row
        position, full_level = _scan_record(
            base,
            base + starts[row],
            base + ends[row],
            len(program),
            pointer_to(program),
            pointer_to(targets),
            pointer_to(bases),
            pointer_to(capacities),
            pointer_to(counts),
            pointer_to(rows),
            pointer_to(left),
            pointer_to(numbers),
            pointer_to(lengths),
            pointer_to(is_valid),
        )
        is_read[row] = position == base + ends[row]
        if not is_read[row]:
            clear_record(program[:, LEVEL], bases, row, saved, counts, numbers, lengths, is_valid)
            if full_level >= 0:
                return row, full_level
    return len(starts), -1


@compiled_inline
def _scan_record(
    base: int,
    position: int,
    end: int,
    instructions_count: int,
    program: Pointer,
    targets: Pointer,
    bases: Pointer,
    capacities: Pointer,
    counts: Pointer,
    rows: Pointer,
    left: Pointer,
    numbers: Pointer,
    lengths: Pointer,
    is_valid: Pointer,
) -> tuple[int, int]:
    """Find the values of a record; return the address behind it, or -1, and the level that is full, or -1.

    :param rows: The current row of each level.
    :param left: Items of the current block, by level.
    """
    at = 0
    while at < instructions_count:
        here = at * WIDTH
        operation = program[here + OPERATION]
        if operation == JUMP:
            at = program[here + NEXT]
            continue
        if operation == NEXT_ITEM:
            at, position, full_level = _next_item(
                at, base, position, end, program, bases, capacities, counts, rows, left, numbers, lengths
            )
            if position < 0:
                return -1, full_level
            continue
        null_branch = program[here + NULL_BRANCH]
        branch, position = _read_branch(operation, null_branch, program[here + BRANCHES_COUNT], position, end)
        if position < 0:
            return -1, -1
        if null_branch >= 0 and branch == null_branch:
            at = program[here + NEXT]
            continue
        index = bases[at] + rows[program[here + LEVEL]]
        is_valid[index] = 1
        if operation < RECORD:
            low, high = program[here + LOW], program[here + HIGH]
            number, length, position = _read_value(operation, program[here + SIZE], low, high, position, end)
            if position < 0:
                return -1, -1
            numbers[index] = number - base if operation in (BYTES, FIXED) else number
            lengths[index] = length
        elif operation == UNION:
            at = targets[program[here + INNER] + branch]
            continue
        elif operation != RECORD:
            numbers[index] = counts[program[here + INNER]]
            left[program[here + INNER]] = 0
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
    at: int,
    base: int,
    position: int,
    end: int,
    program: Pointer,
    bases: Pointer,
    capacities: Pointer,
    counts: Pointer,
    rows: Pointer,
    left: Pointer,
    numbers: Pointer,
    lengths: Pointer,
) -> tuple[int, int, int]:
    """Begin the next item of a list or map, or end it; return the instruction and the address that follow.

    The address is -1 if the items are no list; then the last number is the level that is full, or -1.
    """
    here = at * WIDTH
    owner = program[here + INNER]
    instruction = owner * WIDTH
    level = program[instruction + INNER]
    index = bases[owner] + rows[program[instruction + LEVEL]]
    if left[level] == 0:
        left[level], position = _read_items_count(position, end)
        if position < 0:
            return at, -1, -1
        if counts[level] + left[level] > capacities[level]:
            return at, -1, level
    if left[level] > 0:
        left[level] -= 1
        rows[level] = counts[level]
        counts[level] += 1
        return at + 1, position, -1
    lengths[index] = counts[level] - numbers[index]
    if program[instruction + OPERATION] == MAP:
        first, last = bases[at + 1] + numbers[index], bases[at + 1] + counts[level]
        if _has_equal_keys(base, numbers, lengths, first, last):
            position = -1
    return program[here + NEXT], position, -1
