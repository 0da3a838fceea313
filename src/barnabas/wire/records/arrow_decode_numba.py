"""Decodes records to Arrow columns by numba: fields are copied once, into Arrow's own buffers.

Records are decoded some megabytes at a time, so that no column needs offsets of more than 32 bits; compressed ones in
smaller parts, so that decompressed data is read from the processor's caches.
"""

import mmap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c
from numpy.typing import NDArray

from barnabas.wire.errors import KafkaError
from barnabas.wire.records.arrow_fields import Bytes, Numbers
from barnabas.wire.records.arrow_types import (
    COLUMN_TYPES,
    HEADER_TYPE,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    US_PER_MS,
    WRONG_CHECKSUM,
    Decoded,
    RecordSelection,
    timestamp_out_of_range,
)
from barnabas.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    TRANSACTIONAL_BIT,
    read_header,
)
from barnabas.wire.records.batches_numba import ATTRIBUTES, CRC, START, read_batches
from barnabas.wire.records.bodies import corrupt_at, corrupt_records, impossible_count
from barnabas.wire.records.columns import COLUMNS_COUNT
from barnabas.wire.records.compiled import SHORT_BYTES, address_of, compiled, copy_field
from barnabas.wire.records.compression import DECOMPRESSED_BYTES_MAX, Compression, decompress_into
from barnabas.wire.records.crc_numba import first_wrong
from barnabas.wire.records.kernels import find_kernels
from barnabas.wire.records.walk import (
    BASE_OFFSET,
    END,
    IS_APPEND_TIME,
    LAST_DELTA,
    POSITION,
    RECORD_BYTES_MIN,
    RECORDS_COUNT,
)

#: A decompressed batch cannot hold more.
_RECORDS_MAX = DECOMPRESSED_BYTES_MAX // RECORD_BYTES_MIN

#: Uncompressed bytes that are decoded together: each part costs some hundred calls, whatever its size.
PART_BYTES = 5 * 1024 * 1024
#: Decompressed bytes that are decoded together; a larger batch is decoded alone.
UNPACKED_BYTES = 2 * 1024 * 1024


class _Rows(NamedTuple):
    """Positions of records, as in `columns.RecordColumns`, but as numpy arrays."""

    data: Bytes
    batches: Numbers  #: a row of `batches_numba` for each
    rows: Numbers | None  #: the selected records of the batches; None for all
    null_times: bool
    ends: Numbers
    offsets: Numbers
    timestamps_ms: Numbers
    key_positions: Numbers
    key_sizes: Numbers
    value_positions: Numbers
    value_sizes: Numbers

    def batch_indexes(self) -> Numbers:
        """Return the batch of each record."""
        indexes = np.repeat(np.arange(len(self.batches)), self.batches[:, RECORDS_COUNT])
        return indexes if self.rows is None else indexes[self.rows]

    def base_offset_of(self, row: int) -> int:
        """Return the base offset of a record's batch, for errors."""
        return int(self.batches[self.batch_indexes()[row], BASE_OFFSET])


def decode(buffer: memoryview, selection: RecordSelection) -> Iterator[Decoded]:
    """See `arrow_decode.decode_arrow`.

    :raises KafkaError: CORRUPT_MESSAGE, INVALID_TIMESTAMP.
    """
    chosen = _chosen(buffer, read_batches(buffer), selection)
    if not selection.columns:
        within = (chosen[:, BASE_OFFSET] >= selection.low) & (_last_offsets(chosen) < selection.high)
        for _, batches in _in_place(buffer, chosen[within], selection.check_crcs):
            yield from _counted(batches)
        chosen = chosen[~within]
    for data, batches in _chunks(buffer, chosen, check_crcs=selection.check_crcs):
        rows = _read_rows(data, batches, selection)
        if len(rows.offsets):
            columns = {name: _READERS[name](rows) for name in selection.columns}
            yield Decoded(len(rows.offsets), columns)


def _counted(batches: Numbers) -> Iterator[Decoded]:
    """Yield rows without columns, as many as the headers say."""
    counts = batches[:, RECORDS_COUNT]
    wrong = np.flatnonzero((counts < 0) | (counts > _RECORDS_MAX))
    if len(wrong):
        raise impossible_count(int(batches[wrong[0], BASE_OFFSET]), int(counts[wrong[0]]))
    if counts.any():
        yield Decoded(int(counts.sum()), {})


def _last_offsets(batches: Numbers) -> Numbers:
    return batches[:, BASE_OFFSET] + batches[:, LAST_DELTA]


def _chosen(buffer: memoryview, batches: Numbers, selection: RecordSelection) -> Numbers:
    """Return the batches with visible records."""
    chosen = batches[:, BASE_OFFSET] >= selection.low - batches[:, LAST_DELTA]
    chosen &= batches[:, BASE_OFFSET] < selection.high
    chosen &= batches[:, ATTRIBUTES] & CONTROL_BIT == 0
    for index in np.flatnonzero(chosen & (batches[:, ATTRIBUTES] & TRANSACTIONAL_BIT != 0)).tolist():
        chosen[index] = selection.admits(read_header(buffer, int(batches[index, START])))
    return batches if chosen.all() else batches[chosen]


def _chunks(buffer: memoryview, batches: Numbers, *, check_crcs: bool) -> Iterator[tuple[Bytes, Numbers]]:
    """Yield batches to decode together, and the data that their positions refer to."""
    is_packed = batches[:, ATTRIBUTES] & COMPRESSION_MASK != 0
    for run in np.split(batches, np.flatnonzero(np.diff(is_packed)) + 1):
        if len(run):
            read = _unpacked if run[0, ATTRIBUTES] & COMPRESSION_MASK else _in_place
            yield from read(buffer, run, check_crcs)


def _in_place(buffer: memoryview, batches: Numbers, check_crcs: bool) -> Iterator[tuple[Bytes, Numbers]]:
    data = np.frombuffer(buffer, np.uint8)
    for part in _parts(batches):
        wrong = first_wrong(buffer, part) if check_crcs else None
        if wrong is not None:
            raise corrupt_at(int(part[wrong, BASE_OFFSET]), WRONG_CHECKSUM)
        yield data, part


def _parts(batches: Numbers) -> Iterator[Numbers]:
    """Yield the batches in parts of similar size, so that no small rest remains."""
    if len(batches):
        ends = np.cumsum(batches[:, END] - batches[:, POSITION])
        total_bytes = int(ends[-1])
        count = max(1, round(total_bytes / PART_BYTES))
        cuts = np.searchsorted(ends, [total_bytes * part // count for part in range(1, count)], side="right")
        yield from (part for part in np.split(batches, cuts) if len(part))


def _unpacked(buffer: memoryview, batches: Numbers, check_crcs: bool) -> Iterator[tuple[Bytes, Numbers]]:
    """Each chunk reuses the memory of the last one, because touching new pages is the most expensive part."""
    scratch = memoryview(mmap.mmap(-1, UNPACKED_BYTES + DECOMPRESSED_BYTES_MAX))
    data = np.frombuffer(scratch.toreadonly(), np.uint8)
    batches = batches.copy()
    first, end = 0, 0
    for index, (start, position, packed_end, attributes, crc, base_offset) in enumerate(
        batches[:, [START, POSITION, END, ATTRIBUTES, CRC, BASE_OFFSET]].tolist()
    ):
        if check_crcs and crc32c(buffer[start + CRC_START : packed_end]) != crc:
            raise corrupt_at(base_offset, WRONG_CHECKSUM)
        room = scratch[end : end + DECOMPRESSED_BYTES_MAX]
        batches[index, POSITION] = end
        try:
            codec = Compression(attributes & COMPRESSION_MASK)
            end += decompress_into(codec, buffer[position:packed_end], room)
        except (ValueError, KafkaError) as error:
            raise corrupt_at(base_offset, str(error)) from error
        batches[index, END] = end
        if end >= UNPACKED_BYTES:
            yield data, batches[first : index + 1]
            first, end = index + 1, 0
    if first < len(batches):
        yield data, batches[first:]


def _read_rows(data: Bytes, batches: Numbers, selection: RecordSelection) -> _Rows:
    rows_count = _records_count(batches)
    numbers, _ = arrow_array(COLUMNS_COUNT * rows_count, np.int64)
    columns = [*numbers.reshape(COLUMNS_COUNT, rows_count)]
    problem, batch = find_kernels().scan_records_unlocked(data, batches.ravel(), *batches.shape, *columns)
    if problem:
        raise corrupt_records(int(batches[batch, BASE_OFFSET]), problem)
    rows = _Rows(data, batches, None, selection.null_times, *columns[1:])
    if selection.low <= batches[:, BASE_OFFSET].min() and _last_offsets(batches).max() < selection.high:
        return rows
    chosen = np.flatnonzero((rows.offsets >= selection.low) & (rows.offsets < selection.high))
    return _Rows(data, batches, chosen, selection.null_times, *(column[chosen] for column in columns[1:]))


def _records_count(batches: Numbers) -> int:
    """Return the number of records according to the headers."""
    counts, sizes = batches[:, RECORDS_COUNT], batches[:, END] - batches[:, POSITION]
    wrong = np.flatnonzero((counts < 0) | (counts * RECORD_BYTES_MIN > sizes))
    if len(wrong):
        raise impossible_count(int(batches[wrong[0], BASE_OFFSET]), int(counts[wrong[0]]))
    return int(counts.sum())


def arrow_array(count: int, dtype: type[np.generic]) -> tuple[NDArray[Any], pa.Buffer]:
    """Return an array in one of Arrow's buffers, whose allocator reuses memory."""
    buffer = pa.allocate_buffer(count * np.dtype(dtype).itemsize)
    return np.frombuffer(buffer, dtype), buffer


# Fields


def _binary(rows: _Rows, positions: Numbers, sizes: Numbers) -> pa.BinaryArray:
    """Return the fields at `positions`; a negative size is null."""
    count = len(sizes)
    offsets, offsets_buffer = arrow_array(count + 1, np.int32)
    validity, validity_buffer = arrow_array((count + 7) // 8, np.uint8)
    size, nulls_count = measure_fields(sizes, offsets, validity)
    if size < 0:
        what = f"or a batch behind it: more than {np.iinfo(np.int32).max} bytes in fields of one column"
        raise corrupt_at(rows.base_offset_of(0), what)
    copied, values_buffer = arrow_array(size + SHORT_BYTES, np.uint8)
    copy_fields(rows.data, positions, sizes, copied)
    buffers = [validity_buffer if nulls_count else None, offsets_buffer, values_buffer.slice(0, size)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, nulls_count)


@compiled
def measure_fields(sizes: Numbers, offsets: NDArray[np.int32], validity: Bytes) -> tuple[int, int]:
    """Fill Arrow's offsets and validity; return the bytes of all fields (-1 if offsets cannot hold them) and the
    nulls.
    """
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
    """Copy fields one behind the other; `copied` has `SHORT_BYTES` extra bytes."""
    base, target = address_of(data), address_of(copied)
    data_end = base + data.size
    for row in range(sizes.size):
        size = max(sizes[row], 0)
        copy_field(target, base + positions[row], size, data_end)
        target += size


# Headers


def _headers(rows: _Rows) -> pa.ListArray:
    """Return the headers of all records; null for a record without headers, as in Spark's Kafka source."""
    count = len(rows.offsets)
    offsets, offsets_buffer = arrow_array(count + 1, np.int32)
    validity, validity_buffer = arrow_array((count + 7) // 8, np.uint8)
    starts = rows.value_positions + np.maximum(rows.value_sizes, 0)
    validity.fill(0xFF)
    kernels = find_kernels()
    total, nulls_count = kernels.count_headers(rows.data, count, starts, rows.ends, offsets, validity)
    if total < 0:
        raise _wrong_headers(rows, nulls_count)
    key_positions, key_sizes, value_positions, value_sizes = (
        arrow_array(total, np.int64)[0] for _ in range(4)
    )
    columns = (key_positions, key_sizes, value_positions, value_sizes)
    wrong = kernels.scan_headers(rows.data, count, starts, rows.ends, *columns)
    if wrong >= 0:
        raise _wrong_headers(rows, wrong)
    keys = _strings(_binary(rows, key_positions, key_sizes))
    values = _binary(rows, value_positions, value_sizes)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    buffers = [validity_buffer if nulls_count else None, offsets_buffer]
    return pa.Array.from_buffers(COLUMN_TYPES["headers"], count, buffers, nulls_count, children=[structs])


def _wrong_headers(rows: _Rows, row: int) -> Exception:
    what = "the headers of a record are not as long as its length says, or without a key"
    return corrupt_at(rows.base_offset_of(row), what)


def _strings(names: pa.BinaryArray) -> pa.StringArray:
    try:
        return names.cast(pa.string())  # validates every byte
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())


# Columns of numbers


def _timestamps_us(rows: _Rows) -> pa.TimestampArray:
    times_ms = rows.timestamps_ms
    outside = (times_ms < TIMESTAMP_MS_MIN) | (times_ms > TIMESTAMP_MS_MAX)
    if outside.any():
        if rows.null_times:
            times_us = np.where(outside, 0, times_ms) * US_PER_MS
            return pa.array(times_us, mask=outside).cast(COLUMN_TYPES["timestamp"])
        raise timestamp_out_of_range(rows.base_offset_of(int(np.flatnonzero(outside)[0])))
    times_us, buffer = arrow_array(len(times_ms), np.int64)
    np.multiply(times_ms, US_PER_MS, out=times_us)
    return pa.Array.from_buffers(COLUMN_TYPES["timestamp"], len(times_ms), [None, buffer], 0)


def _timestamp_types(rows: _Rows) -> pa.Int32Array:
    types = (rows.batches[:, IS_APPEND_TIME] != 0).astype(np.int32)
    if (types == types[0]).all():
        return _whole(np.full(len(rows.offsets), types[0]))
    return _whole(types[rows.batch_indexes()])


def _whole(numbers: NDArray[Any]) -> pa.Array:
    """Return a column without nulls; `pyarrow.array` would check and copy the numbers."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, buffer], 0)


_READERS: dict[str, Callable[[_Rows], pa.Array]] = {
    "key": lambda rows: _binary(rows, rows.key_positions, rows.key_sizes),
    "value": lambda rows: _binary(rows, rows.value_positions, rows.value_sizes),
    "offset": lambda rows: _whole(rows.offsets),
    "timestamp": _timestamps_us,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
