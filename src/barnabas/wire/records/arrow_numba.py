"""Arrow columns of records by numba: fields are copied once, into buffers of Arrow's own."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from barnabas.wire.records.arrow_types import (
    COLUMN_TYPES,
    HEADER_TYPE,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    US_PER_MS,
    Decoded,
    Selection,
    outside_of_time,
)
from barnabas.wire.records.bodies import Body, corrupt
from barnabas.wire.records.columns_numba import Bytes, Numbers, read_varint, rows_of, scan_bodies
from barnabas.wire.records.compiled import SHORT_BYTES, address_of, compiled, copy_field
from barnabas.wire.records.compression import Buffer

_HEADER_BYTES_MIN = 2


class _Rows(NamedTuple):
    """Records where they lie, as `columns.RecordColumns` has them, in arrays of numpy."""

    data: Bytes
    bodies: Sequence[Body]
    batches: Callable[[], Numbers]  #: the index of each record's batch
    ends: Numbers
    offsets: Numbers
    timestamps_ms: Numbers
    key_positions: Numbers
    key_sizes: Numbers
    value_positions: Numbers
    value_sizes: Numbers


def decode_bodies(data: Buffer, bodies: Sequence[Body], selection: Selection) -> Decoded:
    """What `arrow_plain.decode_bodies` gives.

    :raises KafkaError: CORRUPT_MESSAGE, INVALID_TIMESTAMP.
    """
    rows = _read_rows(data, bodies, selection)
    columns = {name: _READERS[name](rows) for name in selection.columns}
    return Decoded(len(rows.offsets), columns)


def _read_rows(data: Buffer, bodies: Sequence[Body], selection: Selection) -> _Rows:
    counts = [body.header.records_count for body in bodies]
    rows_count = rows_of(bodies)
    columns = [arrow_array(rows_count, np.int64)[0] for _ in range(8)]
    scan_bodies(data, bodies, columns)
    rows = _Rows(
        np.frombuffer(data, np.uint8), bodies, lambda: np.repeat(np.arange(len(bodies)), counts), *columns[1:]
    )
    if all(
        selection.low <= header.base_offset and header.last_offset < selection.high for header, _, _ in bodies
    ):
        return rows
    chosen = np.flatnonzero((rows.offsets >= selection.low) & (rows.offsets < selection.high))
    return _Rows(rows.data, bodies, lambda: rows.batches()[chosen], *(column[chosen] for column in rows[3:]))


def arrow_array(count: int, dtype: type[np.generic]) -> tuple[NDArray[Any], pa.Buffer]:
    """An array in a buffer of Arrow's, which takes memory that it has had before."""
    buffer = pa.allocate_buffer(count * np.dtype(dtype).itemsize)
    return np.frombuffer(buffer, dtype), buffer


# Fields


def _binary(rows: _Rows, positions: Numbers, sizes: Numbers) -> pa.BinaryArray:
    """The fields at `positions`; a negative size is null."""
    count = len(sizes)
    offsets, offsets_buffer = arrow_array(count + 1, np.int32)
    validity, validity_buffer = arrow_array((count + 7) // 8, np.uint8)
    size, nulls_count = measure_fields(sizes, offsets, validity)
    if size < 0:
        what = f"or a batch behind it: more than {np.iinfo(np.int32).max} bytes in fields of one column"
        raise corrupt(rows.bodies[0].header, what)
    copied, values_buffer = arrow_array(size + SHORT_BYTES, np.uint8)
    copy_fields(rows.data, positions, sizes, copied)
    buffers = [validity_buffer if nulls_count else None, offsets_buffer, values_buffer.slice(0, size)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, nulls_count)


@compiled
def measure_fields(sizes: Numbers, offsets: NDArray[np.int32], validity: Bytes) -> tuple[int, int]:
    """Fill Arrow's offsets and validity; the bytes of all fields (-1 when offsets cannot hold them), and the nulls."""
    total, nulls_count = 0, 0
    validity[:] = 0xFF
    offsets[0] = 0
    for row in range(sizes.size):
        size = sizes[row]
        if size < 0:
            nulls_count += 1
            validity[row >> 3] ^= 1 << (row & 7)
        else:
            total += size
            if total > 0x7FFFFFFF:
                return -1, nulls_count
        offsets[row + 1] = total
    return total, nulls_count


@compiled
def copy_fields(data: Bytes, positions: Numbers, sizes: Numbers, copied: Bytes) -> None:
    """Copy fields one behind the other; `copied` is longer by `SHORT_BYTES` than all of them."""
    base, target = address_of(data), address_of(copied)
    data_end = base + data.size
    for row in range(sizes.size):
        size = max(sizes[row], 0)
        copy_field(target, base + positions[row], size, data_end)
        target += size


# Headers


def _headers(rows: _Rows) -> pa.ListArray:
    """All headers of all records; null for a record without any, as Spark's Kafka source has it."""
    count = len(rows.offsets)
    offsets, offsets_buffer = arrow_array(count + 1, np.int32)
    validity, validity_buffer = arrow_array((count + 7) // 8, np.uint8)
    starts = rows.value_positions + np.maximum(rows.value_sizes, 0)
    total, nulls_count = count_headers(rows.data, starts, rows.ends, offsets, validity)
    if total < 0:
        raise _wrong_headers(rows, nulls_count)
    key_positions, key_sizes, value_positions, value_sizes = (
        arrow_array(total, np.int64)[0] for _ in range(4)
    )
    wrong = scan_headers(rows.data, starts, rows.ends, key_positions, key_sizes, value_positions, value_sizes)
    if wrong >= 0:
        raise _wrong_headers(rows, wrong)
    keys = _strings(_binary(rows, key_positions, key_sizes))
    values = _binary(rows, value_positions, value_sizes)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    buffers = [validity_buffer if nulls_count else None, offsets_buffer]
    return pa.Array.from_buffers(COLUMN_TYPES["headers"], count, buffers, nulls_count, children=[structs])


def _wrong_headers(rows: _Rows, row: int) -> Exception:
    header = rows.bodies[rows.batches()[row]].header
    return corrupt(header, "the headers of a record are not as long as its length says, or without a key")


def _strings(names: pa.BinaryArray) -> pa.StringArray:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:  # it looks at every byte
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())


@compiled
def count_headers(
    data: Bytes, starts: Numbers, ends: Numbers, offsets: NDArray[np.int32], validity: Bytes
) -> tuple[int, int]:
    """Fill Arrow's offsets and validity; how many headers there are and how many records have none.

    -1 and a row when that one is damaged.
    """
    base = address_of(data)
    total, nulls_count = 0, 0
    validity[:] = 0xFF
    offsets[0] = 0
    for row in range(starts.size):
        end = base + ends[row]
        count, position = read_varint(base + starts[row], end)
        if count < 0 or count > (end - position) // _HEADER_BYTES_MIN:
            return -1, row
        if count == 0:
            nulls_count += 1
            validity[row >> 3] ^= 1 << (row & 7)
        total += count
        if total > 0x7FFFFFFF:
            return -1, row
        offsets[row + 1] = total
    return total, nulls_count


@compiled
def scan_headers(
    data: Bytes,
    starts: Numbers,
    ends: Numbers,
    key_positions: Numbers,
    key_sizes: Numbers,
    value_positions: Numbers,
    value_sizes: Numbers,
) -> int:
    """Fill the columns, a row for each header that `count_headers` counted; -1, or the row that is damaged."""
    base = address_of(data)
    number = 0
    for row in range(starts.size):
        end = base + ends[row]
        count, position = read_varint(base + starts[row], end)
        for _ in range(count):
            size, position = read_varint(position, end)
            if size < 0 or size > end - position:
                return row
            key_positions[number] = position - base
            key_sizes[number] = size
            position += size
            size, position = read_varint(position, end)
            if size > end - position:
                return row
            value_positions[number] = position - base
            value_sizes[number] = size
            if size > 0:
                position += size
            number += 1
        if position != end:
            return row
    return -1


# Columns of numbers


def _timestamps_us(rows: _Rows) -> pa.TimestampArray:
    times_ms = rows.timestamps_ms
    outside = (times_ms < TIMESTAMP_MS_MIN) | (times_ms > TIMESTAMP_MS_MAX)
    if outside.any():
        raise outside_of_time(rows.bodies[rows.batches()[np.flatnonzero(outside)[0]]].header)
    times_us, buffer = arrow_array(len(times_ms), np.int64)
    np.multiply(times_ms, US_PER_MS, out=times_us)
    return pa.Array.from_buffers(COLUMN_TYPES["timestamp"], len(times_ms), [None, buffer], 0)


def _timestamp_types(rows: _Rows) -> pa.Int32Array:
    types = np.array([header.is_log_append_time for header, _, _ in rows.bodies], np.int32)
    if types.min(initial=1) == types.max(initial=0):
        return pa.array(np.full(len(rows.offsets), types[0]))
    return pa.array(types[rows.batches()])


_READERS: dict[str, Callable[[_Rows], pa.Array]] = {
    "key": lambda rows: _binary(rows, rows.key_positions, rows.key_sizes),
    "value": lambda rows: _binary(rows, rows.value_positions, rows.value_sizes),
    "offset": lambda rows: pa.array(rows.offsets),
    "timestamp": _timestamps_us,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
