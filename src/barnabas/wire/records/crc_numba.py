"""Checks the CRCs of many batches in one call: with the processor's instruction if it has one, else with the library.

The instruction has a latency of three cycles and a throughput of one per cycle, so three batches are computed in
parallel.
"""

import numpy as np
from crc32c import crc32c

from barnabas.wire.records.arrow_fields import Bytes, Numbers
from barnabas.wire.records.batch import CRC_START
from barnabas.wire.records.batches_numba import CRC, START
from barnabas.wire.records.compiled import (
    add_byte_to_crc,
    add_word_to_crc,
    address_of,
    compiled,
    compiled_inline,
    has_crc_instruction,
    load_byte,
    load_word,
)
from barnabas.wire.records.walk import END

_ALL_BITS = 0xFFFFFFFF
_WORD_BYTES = 8


def first_wrong(buffer: memoryview, batches: Numbers) -> int | None:
    """Return the first batch whose CRC is wrong; None if all are right.

    :param batches: Rows of `batches_numba.read_batches`.
    """
    if not has_crc_instruction():
        return first_wrong_by_library(buffer, batches)
    wrong = find_wrong(np.frombuffer(buffer, np.uint8), batches)
    return None if wrong < 0 else wrong


def first_wrong_by_library(buffer: memoryview, batches: Numbers) -> int | None:
    """See `first_wrong`."""
    for index, (start, end, crc) in enumerate(batches[:, [START, END, CRC]].tolist()):
        if crc32c(buffer[start + CRC_START : end]) != crc:
            return index
    return None


@compiled_inline
def finished_crc(crc: int, position: int, end: int) -> int:
    """Return the CRC of the header, after adding the bytes up to `end`."""
    while end - position >= _WORD_BYTES:
        crc = add_word_to_crc(crc, load_word(position))
        position += _WORD_BYTES
    while position < end:
        crc = add_byte_to_crc(crc, load_byte(position))
        position += 1
    return crc ^ _ALL_BITS


@compiled
def find_wrong(data: Bytes, batches: Numbers) -> int:
    """Return the first batch whose CRC is wrong; -1 if all are right."""
    base = address_of(data)
    last: int = batches.shape[0] - 1
    for first in range(0, last + 1, 3):
        # near the end the last batch is repeated
        second, third = min(first + 1, last), min(first + 2, last)
        at_first, end_first = base + batches[first, START] + CRC_START, base + batches[first, END]
        at_second, end_second = base + batches[second, START] + CRC_START, base + batches[second, END]
        at_third, end_third = base + batches[third, START] + CRC_START, base + batches[third, END]
        of_first = of_second = of_third = _ALL_BITS
        size = min(end_first - at_first, end_second - at_second, end_third - at_third)
        for _ in range(size // _WORD_BYTES):
            of_first = add_word_to_crc(of_first, load_word(at_first))
            of_second = add_word_to_crc(of_second, load_word(at_second))
            of_third = add_word_to_crc(of_third, load_word(at_third))
            at_first += _WORD_BYTES
            at_second += _WORD_BYTES
            at_third += _WORD_BYTES
        if finished_crc(of_first, at_first, end_first) != batches[first, CRC]:
            return first
        if finished_crc(of_second, at_second, end_second) != batches[second, CRC]:
            return second
        if finished_crc(of_third, at_third, end_third) != batches[third, CRC]:
            return third
    return -1
