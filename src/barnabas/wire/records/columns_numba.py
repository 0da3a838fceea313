"""Reads the columns of records by numba, in one pass over all fields."""

from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from barnabas.wire.errors import KafkaError
from barnabas.wire.records.bodies import Body, corrupt_at
from barnabas.wire.records.compiled import address_of, compiled, compiled_inline, load_byte
from barnabas.wire.records.compression import Buffer

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]

#: A record has seven numbers, so at least as many bytes.
RECORD_BYTES_MIN = 7

COLUMNS_COUNT = 8

OFFSET_MAX = (1 << 63) - 1

#: The columns of a table of batches, beginning with the position of the records.
POSITION, END, RECORDS_COUNT, BASE_OFFSET, LAST_DELTA, BASE_MS, MAX_MS, IS_APPEND_TIME = range(8)

#: The address after an invalid number: beyond every end, so that all later reads fail, too.
NOWHERE = 1 << 62

#: Errors of `scan`, by its result.
_TOO_MANY = 1
_CUT_OFF = 2
_OFFSET = 3
_FIELDS = 4
_TIMESTAMP = 5
_LEFT = 6
_TOO_FAR = 7
_WHAT = {
    _TOO_MANY: "more records than its bytes can hold",
    _CUT_OFF: "a record is cut off",
    _OFFSET: "an offset delta is outside the batch",
    _FIELDS: "the fields of a record are longer than the record",
    _TIMESTAMP: "a timestamp of more than 64 bits",
    _TOO_FAR: "offsets of more than 64 bits",
    _LEFT: "bytes follow the last record",
}


def read_bodies(data: Buffer, bodies: Sequence[Body]) -> list[Sequence[int]]:
    """As `columns.read_bodies`, but much faster for many records.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    batches = np.array(
        [
            (
                position,
                end,
                header.records_count,
                header.base_offset,
                header.last_offset_delta,
                header.base_timestamp,
                header.max_timestamp,
                header.is_log_append_time,
            )
            for header, position, end in bodies
        ],
        np.int64,
    ).reshape(-1, 8)
    plain = [array("q", bytes(8 * rows_of(batches))) for _ in range(COLUMNS_COUNT)]
    scan_batches(
        np.frombuffer(data, np.uint8), batches, [np.frombuffer(column, np.int64) for column in plain]
    )
    return [*plain]


def rows_of(batches: Numbers) -> int:
    """The number of records according to the headers.

    :raises KafkaError: CORRUPT_MESSAGE for an impossible number.
    """
    counts, sizes = batches[:, RECORDS_COUNT], batches[:, END] - batches[:, POSITION]
    wrong = (counts < 0) | (counts * RECORD_BYTES_MIN > sizes)
    if wrong.any():
        raise _corrupt(batches, int(np.flatnonzero(wrong)[0]), _TOO_MANY)
    wrong = batches[:, BASE_OFFSET] > OFFSET_MAX - np.maximum(batches[:, LAST_DELTA], 0)
    if wrong.any():
        raise _corrupt(batches, int(np.flatnonzero(wrong)[0]), _TOO_FAR)
    return int(counts.sum())


def scan_batches(data: Bytes, batches: Numbers, columns: Sequence[Numbers]) -> None:
    """Fill the columns `starts` to `value_sizes`, which have `rows_of(batches)` rows.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    wrong, batch = scan(data, batches, *columns)
    if wrong:
        raise _corrupt(batches, batch, wrong)


def _corrupt(batches: Numbers, batch: int, wrong: int) -> KafkaError:
    return corrupt_at(int(batches[batch, BASE_OFFSET]), _WHAT[wrong])


@compiled
def read_long_varint(position: int, end: int) -> tuple[int, int]:
    """As `read_varint`, for a number of any length."""
    number = 0
    for shift in range(0, 70, 7):
        if position >= end:
            break
        byte = load_byte(position)
        position += 1
        if shift == 63 and byte > 1:
            break
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1), position
    return 0, NOWHERE


@compiled_inline
def read_varint(position: int, end: int) -> tuple[int, int]:
    """The signed number at an address and its end address; `NOWHERE` for an incomplete or too long number."""
    if position + 1 < end:
        first = load_byte(position)
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        second = load_byte(position + 1)
        if second < 0x80:
            number = first & 0x7F | second << 7
            return (number >> 1) ^ -(number & 1), position + 2
    return read_long_varint(position, end)


@compiled
def scan(
    data: Bytes,
    batches: Numbers,
    starts: Numbers,
    ends: Numbers,
    offsets: Numbers,
    timestamps_ms: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
    value_positions: Numbers,
    value_sizes: Numbers,
) -> tuple[int, int]:
    """Fill the columns, one row per record; return 0, or the error and its batch."""
    base = address_of(data)
    row = 0
    for batch in range(batches.shape[0]):
        position, body_end = base + batches[batch, POSITION], base + batches[batch, END]
        base_offset, last_delta = batches[batch, BASE_OFFSET], batches[batch, LAST_DELTA]
        base_ms, append_ms = batches[batch, BASE_MS], batches[batch, MAX_MS]
        is_append_time = batches[batch, IS_APPEND_TIME] != 0
        for _ in range(batches[batch, RECORDS_COUNT]):
            start = position
            size, position = read_varint(position, body_end)
            if size < 0 or size > body_end - position:
                return _CUT_OFF, batch
            end = position + size
            timestamp_delta, position = read_varint(position + 1, end)
            offset_delta, position = read_varint(position, end)
            if position > end:
                return _CUT_OFF, batch
            if offset_delta < 0 or offset_delta > last_delta:
                return _OFFSET, batch
            key_size, position = read_varint(position, end)
            if key_size > end - position:
                return _FIELDS, batch
            key_position = position
            position += max(key_size, 0)
            value_size, position = read_varint(position, end)
            if max(value_size, 0) >= end - position:
                return _FIELDS, batch
            timestamp_ms = append_ms
            if not is_append_time:
                timestamp_ms = base_ms + timestamp_delta
                if ((base_ms ^ timestamp_ms) & (timestamp_delta ^ timestamp_ms)) < 0:
                    return _TIMESTAMP, batch
            starts[row] = start - base
            ends[row] = end - base
            offsets[row] = base_offset + offset_delta
            timestamps_ms[row] = timestamp_ms
            key_positions[row] = key_position - base
            key_sizes[row] = key_size
            value_positions[row] = position - base
            value_sizes[row] = value_size
            position = end
            row += 1
        if position != body_end:
            return _LEFT, batch
    return 0, -1
