"""The kernels of `key_table.py` compiled by numba, for machines that have numba but had no C compiler.

A word is a signed number here: numba makes a floating-point number of a signed and an unsigned one.
"""

from collections.abc import Callable

import numpy as np
from numba.extending import overload, register_jitable

from barnabas.wire.records import key_table
from barnabas.wire.records.arrow_fields import Bytes, Numbers
from barnabas.wire.records.compiled import compiled, pointer_to
from barnabas.wire.records.compression import Buffer


@overload(key_table._rotate)  # noqa: SLF001 (parts of the kernels; so are those below)
def _rotate(word: int, bits_count: int) -> Callable[[int, int], int]:
    def rotate(word: int, bits_count: int) -> int:
        return word << bits_count | word >> (64 - bits_count) & (1 << bits_count) - 1

    return rotate


@overload(key_table._cut)  # noqa: SLF001
@overload(key_table._signed)  # noqa: SLF001
def _same(word: int) -> Callable[[int], int]:
    def same(word: int) -> int:
        return word

    return same


for _function in (key_table._read_word, key_table._mix, key_table.digest, key_table._find):  # noqa: SLF001
    register_jitable(_function)
_put_rows = compiled(key_table.put_rows)
_mark_obsolete = compiled(key_table.mark_obsolete)


def put_rows(
    slots: Buffer,
    slots_count: int,
    room_count: int,
    latest_offset: int,
    secret: Buffer,
    data: Buffer,
    rows: Buffer,
    first: int,
    end: int,
    first_offset: int,
    *columns: Buffer,
) -> tuple[int, int, int]:
    """See `key_table`; so is the other function."""
    numbers = [_longs(each) for each in (slots, secret, rows, *columns)]
    return put_in(
        slots_count,
        room_count,
        latest_offset,
        np.frombuffer(data, np.uint8),
        first,
        end,
        first_offset,
        *numbers,
    )


def mark_obsolete(
    slots: Buffer,
    slots_count: int,
    latest_offset: int,
    secret: Buffer,
    data: Buffer,
    first: int,
    end: int,
    offsets: Buffer,
    key_positions: Buffer,
    key_sizes: Buffer,
    obsolete: bytearray,
) -> None:
    numbers = [_longs(each) for each in (slots, secret, offsets, key_positions, key_sizes)]
    mark_in(
        slots_count,
        latest_offset,
        np.frombuffer(data, np.uint8),
        first,
        end,
        np.frombuffer(obsolete, np.uint8),
        *numbers,
    )


def _longs(numbers: Buffer) -> Numbers:
    return np.frombuffer(numbers, np.int64)


@compiled
def put_in(
    slots_count: int,
    room_count: int,
    latest_offset: int,
    data: Bytes,
    first: int,
    end: int,
    first_offset: int,
    slots: Numbers,
    secret: Numbers,
    rows: Numbers,
    offsets: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
) -> tuple[int, int, int]:
    return _put_rows(
        pointer_to(slots),
        slots_count,
        room_count,
        latest_offset,
        pointer_to(secret),
        pointer_to(data),
        pointer_to(rows),
        first,
        end,
        first_offset,
        pointer_to(offsets),
        pointer_to(key_positions),
        pointer_to(key_sizes),
    )


@compiled
def mark_in(
    slots_count: int,
    latest_offset: int,
    data: Bytes,
    first: int,
    end: int,
    obsolete: Bytes,
    slots: Numbers,
    secret: Numbers,
    offsets: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
) -> None:
    _mark_obsolete(
        pointer_to(slots),
        slots_count,
        latest_offset,
        pointer_to(secret),
        pointer_to(data),
        first,
        end,
        pointer_to(offsets),
        pointer_to(key_positions),
        pointer_to(key_sizes),
        pointer_to(obsolete),
    )
