"""Reads the headers of many batches into one table by numba, for topics with few records per batch."""

import numpy as np

from barnabas.wire.records.arrow_fields import Bytes, Numbers
from barnabas.wire.records.batch import (
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    CRC_POSITION,
    CRC_START,
    LENGTH_BYTES_MIN,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    iterate_headers,
    read_header,
)
from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, load_byte
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.walk import (
    BASE_MS,
    BASE_OFFSET,
    END,
    IS_APPEND_TIME,
    LAST_DELTA,
    MAX_MS,
    POSITION,
    RECORDS_COUNT,
)

#: Further columns of batches, besides those of `walk`.
ATTRIBUTES, START, CRC = 8, 9, 10
_NUMBERS_COUNT = 11


def read_batches(data: Buffer) -> Numbers:
    """Return all complete batches, one row each.

    :raises KafkaError: CORRUPT_MESSAGE for an invalid length or magic byte.
    """
    plain = np.frombuffer(data, np.uint8)
    count = find_batches(plain, np.empty((0, _NUMBERS_COUNT), np.int64))
    if count < 0:
        for _ in iterate_headers(data):  # raises the error
            pass
    batches = np.empty((count, _NUMBERS_COUNT), np.int64)
    find_batches(plain, batches)
    return batches


def read_last_header(buffer: Buffer) -> BatchHeader | None:
    """Return the header of the last complete batch; reads only the lengths of those before it. None without a batch.

    :raises KafkaError: CORRUPT_MESSAGE for an invalid length, or an invalid last magic byte.
    """
    start = find_last(np.frombuffer(buffer, np.uint8))
    if start >= 0:
        return read_header(buffer, start)
    last = None
    for _, header in iterate_headers(buffer):  # raises the error, if there is one
        last = header
    return last


@compiled_inline
def load_int(address: int, count: int) -> int:
    """Return a signed number of that many bytes in network byte order."""
    number: int = -(load_byte(address) >> 7)
    for index in range(count):
        number = number << 8 | load_byte(address + index)
    return number


@compiled
def find_last(data: Bytes) -> int:
    """Return the position of the last complete batch, or -1, also for an invalid header."""
    base = address_of(data)
    end, start, last = base + data.size, base, -1
    while end - start >= BATCH_OVERHEAD_BYTES:
        length = load_int(start + 8, 4)
        if length < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES:
            return -1
        if end - start < length + BATCH_OVERHEAD_BYTES:
            break
        last = start - base
        start += length + BATCH_OVERHEAD_BYTES
    return last if last >= 0 and load_byte(base + last + MAGIC_POSITION) == MAGIC else -1


@compiled
def find_batches(data: Bytes, batches: Numbers) -> int:
    """Count the complete batches, and fill the table unless it is empty; -1 if a header is invalid."""
    base = address_of(data)
    end, start = base + data.size, base
    count = 0
    while end - start >= BATCH_OVERHEAD_BYTES:
        length = load_int(start + 8, 4)
        if length < LENGTH_BYTES_MIN:
            return -1
        if end - start < length + BATCH_OVERHEAD_BYTES:
            break
        if load_byte(start + MAGIC_POSITION) != MAGIC or length < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES:
            return -1
        if batches.shape[0]:
            attributes = load_int(start + CRC_START, 2)
            batches[count, POSITION] = start - base + BATCH_HEADER_BYTES
            batches[count, END] = start - base + BATCH_OVERHEAD_BYTES + length
            batches[count, RECORDS_COUNT] = load_int(start + 57, 4)
            batches[count, BASE_OFFSET] = load_int(start, 8)
            batches[count, LAST_DELTA] = load_int(start + 23, 4)
            batches[count, BASE_MS] = load_int(start + 27, 8)
            batches[count, MAX_MS] = load_int(start + 35, 8)
            batches[count, IS_APPEND_TIME] = attributes & LOG_APPEND_TIME_BIT
            batches[count, ATTRIBUTES] = attributes
            batches[count, START] = start - base
            batches[count, CRC] = load_int(start + CRC_POSITION, 4) & 0xFFFFFFFF
        count += 1
        start += length + BATCH_OVERHEAD_BYTES
    return count
