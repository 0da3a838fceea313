"""Finds the fields of many Avro records of one flat schema, by numba.

It accepts no value that a reader of single values would refuse or read differently; it may refuse odd ones.
"""

from typing import Any

from numpy.typing import NDArray

from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, copy, load_byte

#: Kinds of fields: numbers as varints, bytes behind their length, and others by their size in bytes.
INT, LONG, BYTES, BOOLEAN, FLOAT, DOUBLE = range(6)
#: The kinds of Avro's primitive types.
KINDS = {
    "int": INT,
    "long": LONG,
    "bytes": BYTES,
    "string": BYTES,
    "boolean": BOOLEAN,
    "float": FLOAT,
    "double": DOUBLE,
}

Array = NDArray[Any]

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_WITHOUT_SIGN = 2**63 - 1
_LAST_SHIFT = 63


@compiled_inline
def _read_long(position: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint of 64 bits and the address behind it, or -1 as the address."""
    value, shift = 0, 0
    while position < end and shift <= _LAST_SHIFT:
        byte = load_byte(position)
        position += 1
        if shift == _LAST_SHIFT and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & _WITHOUT_SIGN) ^ -(value & 1), position
        shift += 7
    return 0, -1


@compiled_inline
def _load_little_endian(position: int, size: int) -> int:
    number = 0
    for index in range(size):
        number |= load_byte(position + index) << (8 * index)
    return number


@compiled
def scan_values(
    data: Array,
    starts: Array,
    ends: Array,
    kinds: Array,
    null_branches: Array,
    numbers: Array,
    lengths: Array,
    is_valid: Array,
    is_read: Array,
) -> None:
    """Find the fields of records.

    :param data: Bytes of all records, which begin at `starts` and end at `ends`.
    :param kinds: Of each column.
    :param null_branches: The branch of the union with null that is null, -1 for fields that are no union.
    :param numbers: Gets by column and row the number, the bits of a floating point number, or where bytes begin.
    :param lengths: Gets by column and row how many bytes there are; zero before the call.
    :param is_valid: Gets by column and row whether there is a value; False before the call.
    :param is_read: Gets by row whether the record has exactly these fields.
    """
    base = address_of(data)
    for row in range(len(starts)):
        position, end = base + starts[row], base + ends[row]
        for column in range(len(kinds)):
            kind, null_branch = kinds[column], null_branches[column]
            if null_branch >= 0:
                branch, position = _read_long(position, end)
                if position < 0 or branch < 0 or branch > 1:
                    position = -1
                    break
                if branch == null_branch:
                    continue
            if kind <= BYTES:
                number, position = _read_long(position, end)
                if position < 0 or (kind == INT and not _INT_MIN <= number <= _INT_MAX):
                    position = -1
                    break
                if kind == BYTES:
                    if number < 0 or number > end - position:
                        position = -1
                        break
                    lengths[column, row] = number
                    number, position = position - base, position + number
            else:
                size = 1 if kind == BOOLEAN else 4 if kind == FLOAT else 8
                if end - position < size:
                    position = -1
                    break
                number = _load_little_endian(position, size)
                position += size
            numbers[column, row] = number
            is_valid[column, row] = True
        is_read[row] = position == end


@compiled
def gather_bytes(data: Array, starts: Array, lengths: Array, target: Array) -> None:
    """Copy bytes of several places behind each other."""
    base, position = address_of(data), address_of(target)
    for index in range(len(starts)):
        copy(position, base + starts[index], lengths[index])
        position += lengths[index]
