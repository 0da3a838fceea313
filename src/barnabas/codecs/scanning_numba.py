"""What kernels that read values of a schema share."""

from typing import Any

from numpy.typing import NDArray

from barnabas.codecs.found_values import ValueTables
from barnabas.wire.records.compiled import (
    address_of,
    compiled,
    compiled_inline,
    copy,
    load_byte,
    pointer_to,
)

Array = NDArray[Any]
#: Elements of an array by index, unchecked.
Pointer = Any

_WITHOUT_SIGN = 2**63 - 1
_LAST_SHIFT = 63


@compiled_inline
def read_varint(position: int, end: int) -> tuple[int, int]:
    """Return the 64 bits of a varint and the address behind it, or -1 as the address."""
    value, shift = 0, 0
    while position < end and shift <= _LAST_SHIFT:
        byte = load_byte(position)
        position += 1
        if shift == _LAST_SHIFT and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, -1


@compiled_inline
def zigzag(value: int) -> int:
    """Return the number that 64 bits stand for."""
    return ((value >> 1) & _WITHOUT_SIGN) ^ -(value & 1)


@compiled_inline
def load_little_endian(position: int, size: int) -> int:
    """Return a number without its sign if it has less than 64 bits."""
    number = 0
    for index in range(size):
        number |= load_byte(position + index) << (8 * index)
    return number


@compiled_inline
def pointers_to(tables: ValueTables) -> ValueTables:
    """Return pointers, which are not reference-counted when functions receive them."""
    return ValueTables(
        pointer_to(tables.bases),
        pointer_to(tables.capacities),
        pointer_to(tables.counts),
        pointer_to(tables.numbers),
        pointer_to(tables.lengths),
        pointer_to(tables.is_valid),
    )


@compiled
def clear_record(levels: Array, row: int, saved: Array, tables: ValueTables) -> None:
    """Remove the values of a record that was not read to its end.

    :param levels: Of each column.
    :param row: Of the record.
    :param saved: Rows of each level that were in use before.
    """
    for at in range(len(levels)):
        level = levels[at]
        if level >= 0:
            first = tables.bases[at] + (row if level == 0 else saved[level])
            last = tables.bases[at] + (row + 1 if level == 0 else tables.counts[level])
            tables.numbers[first:last] = 0
            tables.lengths[first:last] = 0
            tables.is_valid[first:last] = 0
    tables.counts[:] = saved


@compiled
def gather_bytes(data: Array, starts: Array, lengths: Array, target: Array) -> None:
    """Copy bytes of several places behind each other."""
    base, position = address_of(data), address_of(target)
    for index in range(len(starts)):
        copy(position, base + starts[index], lengths[index])
        position += lengths[index]
