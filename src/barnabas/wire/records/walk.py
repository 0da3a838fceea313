# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""Walks through the records of batches, and through LZ4 frames, without making an object of any part.

Where the package is built with a C compiler, this is a compiled module with the C types of `walk.pxd`. Elsewhere it
runs as the Python that it is, or compiled by numba (`walk_numba.py`), and does the same.
"""

from collections.abc import MutableSequence, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from barnabas.base.buffers import Buffer

if TYPE_CHECKING:
    import cython  # noqa: TC004 (Cython reads this; nothing imports it)

#: Whether this module is machine code.
COMPILED = not __file__.endswith(".py")

#: A `Problem`, the index of the record that has it, the position behind that record, its timestamp, and the largest
#: timestamp of the records before it, at least -1.
WalkResult: TypeAlias = tuple[int, int, int, int, int]


#: 64-bit integers that are written to: an `array("q")`, or an array of numpy.
Longs: TypeAlias = MutableSequence[int]

#: The numbers of a batch at the beginning of its row in a table of batches: where its records begin and end, how many
#: they are, its base offset, the largest offset delta, the base timestamp, the largest timestamp, and whether
#: that is the timestamp of all records (LogAppendTime).
POSITION, END, RECORDS_COUNT, BASE_OFFSET, LAST_DELTA, BASE_MS, MAX_MS, IS_APPEND_TIME = range(8)

#: A record is its length and six numbers, of at least one byte each.
RECORD_BYTES_MIN = 7


class Problem(IntEnum):
    """The reason why a walk ends; from NO_KEY on, the record is well-formed but not valid for the topic."""

    NONE = 0
    CUT_OFF = 1
    BYTES_BEHIND = 2
    RECORD_SIZE = 3
    OFFSET_DELTA = 4
    TIMESTAMP = 5
    HEADERS_COUNT = 6
    HEADER_WITHOUT_KEY = 7
    TOO_MANY_HEADERS = 8
    NO_KEY = 9
    TOO_EARLY = 10
    TOO_LATE = 11
    OFFSET = 12


# In the compiled module these are C integers: code without the GIL can read no others.
_NONE = int(Problem.NONE)
_CUT_OFF = int(Problem.CUT_OFF)
_BYTES_BEHIND = int(Problem.BYTES_BEHIND)
_RECORD_SIZE = int(Problem.RECORD_SIZE)
_OFFSET_DELTA = int(Problem.OFFSET_DELTA)
_TIMESTAMP = int(Problem.TIMESTAMP)
_HEADERS_COUNT = int(Problem.HEADERS_COUNT)
_HEADER_WITHOUT_KEY = int(Problem.HEADER_WITHOUT_KEY)
_TOO_MANY_HEADERS = int(Problem.TOO_MANY_HEADERS)
_NO_KEY = int(Problem.NO_KEY)
_TOO_EARLY = int(Problem.TOO_EARLY)
_TOO_LATE = int(Problem.TOO_LATE)
_OFFSET = int(Problem.OFFSET)
#: The flags of an LZ4 frame: version 1 and independent blocks must be there, a dictionary and a reserved bit must not.
_LZ4_FLAGS_MASK, _LZ4_FLAGS = 0xE3, 0x60
_LZ4_BLOCK_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_FAILED = -1
_NO_TIMESTAMP = -1
_INT32_MAX = (1 << 31) - 1
_INT32_SHIFT_MAX = 28
_INT64_SHIFT_MAX = 63
_INT64_MAX = (1 << 63) - 1
_INT64_MIN = -1 - _INT64_MAX


def walk(
    data: Buffer,
    position: int,
    index: int,
    count: int,
    base_timestamp_ms: int,
    earliest_ms: int,
    latest_ms: int,
    needs_keys: bool,
    headers_count_max: int,
) -> WalkResult:
    """Walk from the record of that index, which begins at `position`, to the last of `count` at the end of `data`.

    Offset deltas must be the indexes. Timestamps, but for -1, must be in [`earliest_ms`, `latest_ms`]; `latest_ms` is
    not negative.
    """
    size = len(data)
    largest_ms = timestamp_ms = _NO_TIMESTAMP
    problem, key_size = _NONE, 0
    while index < count:
        length, position = _read_varint(data, position, size, _INT32_SHIFT_MAX)
        if position < 0 or length <= 0 or length > size - position:
            return _CUT_OFF, index, position, timestamp_ms, largest_ms
        end = position + length
        delta_ms, position = _read_varint(
            data, position + 1, end, _INT64_SHIFT_MAX
        )  # a byte of attributes first
        if position < 0:
            return _CUT_OFF, index, position, timestamp_ms, largest_ms
        if delta_ms > 0:
            if base_timestamp_ms > _INT64_MAX - delta_ms:
                return _TIMESTAMP, index, position, timestamp_ms, largest_ms
        elif base_timestamp_ms < _INT64_MIN - delta_ms:
            return _TIMESTAMP, index, position, timestamp_ms, largest_ms
        timestamp_ms = base_timestamp_ms + delta_ms
        problem, position, key_size, headers_count_max = _walk_fields(
            data, position, end, index, headers_count_max
        )
        if problem != _NONE:
            return problem, index, position, timestamp_ms, largest_ms
        if needs_keys and key_size < 0:
            return _NO_KEY, index, position, timestamp_ms, largest_ms
        if timestamp_ms > largest_ms:
            if timestamp_ms > latest_ms:
                return _TOO_LATE, index, position, timestamp_ms, largest_ms
            largest_ms = timestamp_ms
        if timestamp_ms < earliest_ms and timestamp_ms != _NO_TIMESTAMP:
            return _TOO_EARLY, index, position, timestamp_ms, largest_ms
        index += 1
    return (_NONE if position == size else _BYTES_BEHIND), index, position, timestamp_ms, largest_ms


def walk_unlocked(
    data: Buffer,
    position: int,
    index: int,
    count: int,
    base_timestamp_ms: int,
    earliest_ms: int,
    latest_ms: int,
    needs_keys: bool,
    headers_count_max: int,
) -> WalkResult:
    """`walk` for worker threads: machine code does not hold the GIL, which would cost too much on the hot path."""
    if not COMPILED:
        return walk(
            data,
            position,
            index,
            count,
            base_timestamp_ms,
            earliest_ms,
            latest_ms,
            needs_keys,
            headers_count_max,
        )
    with cython.nogil:
        return walk(
            data,
            position,
            index,
            count,
            base_timestamp_ms,
            earliest_ms,
            latest_ms,
            needs_keys,
            headers_count_max,
        )


def scan_records(
    data: Buffer,
    batches: Sequence[int],
    batches_count: int,
    width: int,
    starts: Longs,
    ends: Longs,
    offsets: Longs,
    timestamps_ms: Longs,
    key_positions: Longs,
    key_sizes: Longs,
    value_positions: Longs,
    value_sizes: Longs,
) -> tuple[int, int]:
    """Fill the columns, one row for each record; return `Problem.NONE`, or a problem and the batch that has it.

    There must be as many rows as the batches have records, at least 0 each, and the records of each batch must lie in
    `data`. `batches` has `width` numbers for each batch. A negative size is null. Headers are not read.
    """
    row = 0
    for batch in range(batches_count):
        at = batch * width
        position, body_end = batches[at], batches[at + 1]
        base_offset, last_delta, base_ms = batches[at + 3], batches[at + 4], batches[at + 5]
        is_append_time = batches[at + 7]
        if is_append_time:
            base_ms = batches[at + 6]
        if last_delta > 0 and base_offset > _INT64_MAX - last_delta:
            return _OFFSET, batch
        delta_min_ms = _INT64_MIN - base_ms if base_ms < 0 else _INT64_MIN
        delta_max_ms = _INT64_MAX - base_ms if base_ms > 0 else _INT64_MAX
        for _ in range(batches[at + 2]):
            starts[row] = position
            delta_ms, offset_delta, position, end = _scan_deltas(data, position, body_end)
            if end < 0:
                return _CUT_OFF, batch
            if offset_delta < 0 or offset_delta > last_delta:
                return _OFFSET_DELTA, batch
            if is_append_time:
                delta_ms = 0
            elif delta_ms < delta_min_ms or delta_ms > delta_max_ms:
                return _TIMESTAMP, batch
            key_positions[row], key_sizes[row], position, size = _scan_fields(data, position, end)
            if position < 0:
                return _RECORD_SIZE, batch
            value_positions[row] = position
            value_sizes[row] = size
            offsets[row] = base_offset + offset_delta
            timestamps_ms[row] = base_ms + delta_ms
            ends[row] = position = end
            row += 1
        if position != body_end:
            return _BYTES_BEHIND, batch
    return _NONE, -1


def scan_records_unlocked(
    data: Buffer,
    batches: Sequence[int],
    batches_count: int,
    width: int,
    starts: Longs,
    ends: Longs,
    offsets: Longs,
    timestamps_ms: Longs,
    key_positions: Longs,
    key_sizes: Longs,
    value_positions: Longs,
    value_sizes: Longs,
) -> tuple[int, int]:
    """`scan_records`; machine code does not hold the GIL."""
    if not COMPILED:
        return scan_records(
            data,
            batches,
            batches_count,
            width,
            starts,
            ends,
            offsets,
            timestamps_ms,
            key_positions,
            key_sizes,
            value_positions,
            value_sizes,
        )
    with cython.nogil:
        return scan_records(
            data,
            batches,
            batches_count,
            width,
            starts,
            ends,
            offsets,
            timestamps_ms,
            key_positions,
            key_sizes,
            value_positions,
            value_sizes,
        )


def count_headers(
    data: Buffer,
    rows_count: int,
    starts: Sequence[int],
    ends: Sequence[int],
    offsets: MutableSequence[int],
    validity: MutableSequence[int],
) -> tuple[int, int]:
    """Fill Arrow's offsets; clear the bits in `validity` of records without headers, which are to be set before.

    Return the number of headers and of records without; or -1 and the first row that is damaged.

    :param starts: Of each record's headers, within its record, which ends at `ends`.
    :param offsets: 32-bit integers, one more than there are rows.
    """
    total, nulls_count = 0, 0
    offsets[0] = 0
    for row in range(rows_count):
        end = ends[row]
        count, position = _read_varint(data, starts[row], end, _INT64_SHIFT_MAX)
        if (
            position < 0 or count < 0 or count > (end - position) // 2
        ):  # the size of its key, and that of its value
            return _FAILED, row
        if count == 0:
            nulls_count += 1
            validity[row >> 3] ^= 1 << (row & 7)
        total += count
        if total > _INT32_MAX:
            return _FAILED, row
        offsets[row + 1] = total
    return total, nulls_count


def scan_headers(
    data: Buffer,
    rows_count: int,
    starts: Sequence[int],
    ends: Sequence[int],
    key_positions: Longs,
    key_sizes: Longs,
    value_positions: Longs,
    value_sizes: Longs,
) -> int:
    """Fill the columns, one row for each header that `count_headers` has counted; return the damaged record, or -1."""
    header = 0
    for row in range(rows_count):
        end = ends[row]
        count, position = _read_varint(data, starts[row], end, _INT64_SHIFT_MAX)
        while count > 0:
            size, position = _read_varint(data, position, end, _INT64_SHIFT_MAX)
            if position < 0 or size < 0 or size > end - position:
                return row
            key_positions[header] = position
            key_sizes[header] = size
            size, position = _read_varint(data, position + size, end, _INT64_SHIFT_MAX)
            if position < 0 or size > end - position:
                return row
            value_positions[header] = position
            value_sizes[header] = size
            if size > 0:
                position += size
            header += 1
            count -= 1
        if position != end:
            return row
    return _FAILED


def lz4_frame_end(data: Buffer) -> int:
    """Return where the first LZ4 frame ends, by the sizes of its blocks; -1 if its blocks are linked or it is cut off.

    The caller has looked at the magic number.
    """
    size = len(data)
    if size < 7 or data[4] & _LZ4_FLAGS_MASK != _LZ4_FLAGS:
        return _FAILED
    flags = data[4]
    position = 15 if flags & _LZ4_CONTENT_SIZE else 7
    while position + 4 <= size:
        block = (data[position + 3] & 0x7F) << 24 | data[position + 2] << 16
        block |= data[position + 1] << 8 | data[position]
        position += 4
        if block == 0:
            return position + 4 if flags & _LZ4_CONTENT_CHECKSUM else position
        position += block + 4 if flags & _LZ4_BLOCK_CHECKSUM else block
    return _FAILED


def _walk_fields(
    data: Buffer, position: int, end: int, index: int, headers_left: int
) -> tuple[int, int, int, int]:
    """Walk from a record's offset delta to its `end`: problem, position, size of the key, headers still allowed."""
    offset_delta, position = _read_varint(data, position, end, _INT32_SHIFT_MAX)
    if position < 0:
        return _CUT_OFF, position, 0, headers_left
    if offset_delta != index:
        return _OFFSET_DELTA, position, 0, headers_left
    key_size, position = _skip_field(data, position, end)
    if position >= 0:
        _, position = _skip_field(data, position, end)
    if position < 0:
        return _CUT_OFF, position, 0, headers_left
    count, position = _read_varint(data, position, end, _INT32_SHIFT_MAX)
    if position < 0:
        return _CUT_OFF, position, 0, headers_left
    if count < 0 or count > (end - position) // 2:
        return _HEADERS_COUNT, position, 0, headers_left
    if count > headers_left:
        return _TOO_MANY_HEADERS, position, 0, headers_left
    if count > 0:
        problem, position = _skip_headers(data, position, end, count)
        if problem != _NONE:
            return problem, position, 0, headers_left
    return (_NONE if position == end else _RECORD_SIZE), position, key_size, headers_left - count


# The next two functions read numbers of one byte, the majority, without a call. Each number must end early enough for
# those behind it to have a byte each, so the first byte of a number is always there. No byte behind the end of a
# record is read.


def _scan_deltas(data: Buffer, position: int, body_end: int) -> tuple[int, int, int, int]:
    """Return the deltas of a record's timestamp and offset, the position behind them, its end; -1 if it is cut off."""
    if position >= body_end:
        return 0, 0, position, _FAILED
    byte = data[position]
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        size, position = _read_varint(data, position, body_end, _INT64_SHIFT_MAX)
        if position < 0:
            return 0, 0, position, _FAILED
    if size < 6 or size > body_end - position:
        return 0, 0, position, _FAILED
    end = position + size
    byte = data[position + 1]  # the first is of attributes
    if byte < 0x80:
        delta_ms = (byte >> 1) ^ -(byte & 1)
        position += 2
    else:
        delta_ms, position = _read_varint(data, position + 1, end - 4, _INT64_SHIFT_MAX)
        if position < 0:
            return 0, 0, position, _FAILED
    byte = data[position]
    if byte < 0x80:
        return delta_ms, (byte >> 1) ^ -(byte & 1), position + 1, end
    offset_delta, position = _read_varint(data, position, end - 3, _INT64_SHIFT_MAX)
    return delta_ms, offset_delta, position, end if position >= 0 else _FAILED


def _scan_fields(data: Buffer, position: int, end: int) -> tuple[int, int, int, int]:
    """Return position and size of the key and value at `position`; the value's is -1 if they are too long."""
    byte = data[position]
    if byte < 0x80:
        key_size = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        key_size, position = _read_varint(data, position, end - 2, _INT64_SHIFT_MAX)
        if position < 0:
            return 0, 0, _FAILED, 0
    key_position = position
    if key_size > 0:
        if key_size > end - 2 - position:
            return 0, 0, _FAILED, 0
        position += key_size
    byte = data[position]
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        size, position = _read_varint(data, position, end - 1, _INT64_SHIFT_MAX)
    if position < 0 or size >= end - position:
        return 0, 0, _FAILED, 0
    return key_position, key_size, position, size


def _skip_headers(data: Buffer, position: int, end: int, count: int) -> tuple[int, int]:
    """Return the problem of the `count` record headers at `position`, and the position behind them."""
    while count > 0:
        size, position = _skip_field(data, position, end)
        if size < 0:
            return _HEADER_WITHOUT_KEY, position
        if position >= 0:
            _, position = _skip_field(data, position, end)
        if position < 0:
            return _CUT_OFF, position
        count -= 1
    return _NONE, position


def _skip_field(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return the size of the field at `position`, negative for null, and the position behind it; -1: cut off."""
    size, position = _read_varint(data, position, end, _INT32_SHIFT_MAX)
    if position < 0 or size > end - position:
        return 0, _FAILED
    return size, position + size if size > 0 else position


def _read_varint(data: Buffer, position: int, end: int, shift_max: int) -> tuple[int, int]:
    """Return the zigzag number at `position` and the position behind it, -1 if it is cut off or too large.

    `shift_max` is where the last byte that it can have adds its bits: 28 for 32 bits, 63 for 64.
    """
    if position >= end:
        return 0, _FAILED
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    number = byte & 0x7F
    if position < end and data[position] < 0x80:
        number |= data[position] << 7
        return (number >> 1) ^ -(number & 1), position + 1
    shift = 7
    while position < end:
        byte = data[position]
        position += 1
        if shift == shift_max and byte > (15 if shift_max == _INT32_SHIFT_MAX else 1):
            return 0, _FAILED
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((number >> 1) & _INT64_MAX) ^ -(number & 1), position
        shift += 7
    return 0, _FAILED
