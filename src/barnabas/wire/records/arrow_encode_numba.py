"""Encodes Arrow columns as record batches with numba: each field is copied once, to its place in the batch."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from barnabas.wire.records.arrow_decode_numba import arrow_array
from barnabas.wire.records.arrow_fields import Bytes, Fields, fields_of, no_fields, offsets_of
from barnabas.wire.records.arrow_rows import Batching, Columns, Encode, EncodedBatch, Longs, next_sequence
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    CRC_POSITION,
    CRC_START,
    MAGIC,
    NO_LEADER_EPOCH,
    TRANSACTIONAL_BIT,
    compute_crc,
)
from barnabas.wire.records.compiled import (
    SHORT_BYTES,
    address_of,
    compiled,
    compiled_inline,
    copy_field,
    store_byte,
)
from barnabas.wire.records.compression import Compression, compress

#: The columns of `cut` per batch: first row, end row, bytes of its records, largest timestamp.
_BATCH_NUMBERS = 4

#: Bytes of batches in one buffer: recently used memory is reused.
_RUN_BYTES = 4 * 1024 * 1024


class _Headers(NamedTuple):
    """The headers of all rows, and the range of each row."""

    firsts: Longs
    counts: Longs
    keys: Fields
    values: Fields


def encoder(rows: Columns) -> Encode:
    """Return the encoder of checked rows; batches share buffers."""
    count = len(rows.timestamps_ms)
    times_ms = np.require(rows.timestamps_ms, np.int64, ["C", "W"])
    columns = _fields(rows.keys, count), _fields(rows.values, count), _headers(rows.headers, count)
    return partial(_encode_rows, times_ms, columns)


def _encode_rows(
    times_ms: Longs,
    columns: tuple[Fields, Fields, _Headers],
    order: Longs,
    batching: Batching,
    base_sequence: int,
) -> Iterator[EncodedBatch]:
    order = np.require(order, np.int64, ["C", "W"])
    sizes, batches = np.empty(len(order), np.int64), np.empty((len(order), _BATCH_NUMBERS), np.int64)
    bytes_max = batching.batch_bytes_max - BATCH_HEADER_BYTES
    batches = batches[: cut(order, times_ms, *columns, bytes_max, sizes, batches)]
    for run in _runs(batches):
        output, buffer = arrow_array(_with_headers(run) + SHORT_BYTES, np.uint8)
        write(order, times_ms, sizes, run, *columns, output)
        view, position = memoryview(buffer).cast("B"), 0
        for (first, end, size_bytes, largest_ms), base_ms in zip(
            run.tolist(), times_ms[order[run[:, 0]]].tolist(), strict=True
        ):
            batch = view[position : position + BATCH_HEADER_BYTES + size_bytes]
            position += len(batch)
            batch = _packed(batch, batching)
            _write_header(batch, batching, base_sequence, end - first, base_ms, largest_ms)
            yield EncodedBatch(batch, end - first)
            base_sequence = next_sequence(base_sequence, end - first)


def _runs(batches: Longs) -> Iterator[Longs]:
    """Yield groups of batches that are written together."""
    ends = np.cumsum(batches[:, 2])
    first, before = 0, 0
    while first < len(batches):
        end = max(first + 1, int(np.searchsorted(ends, before + _RUN_BYTES, side="right")))
        yield batches[first:end]
        first, before = end, int(ends[end - 1])


def _with_headers(batches: Longs) -> int:
    return int(batches[:, 2].sum()) + len(batches) * BATCH_HEADER_BYTES


def _packed(batch: memoryview, batching: Batching) -> memoryview:
    if batching.compression is Compression.NONE:
        return batch
    body = compress(batching.compression, batch[BATCH_HEADER_BYTES:], batching.level)
    packed = memoryview(bytearray(BATCH_HEADER_BYTES + len(body)))
    packed[BATCH_HEADER_BYTES:] = body
    return packed


def _write_header(
    batch: memoryview,
    batching: Batching,
    base_sequence: int,
    records_count: int,
    base_ms: int,
    largest_ms: int,
) -> None:
    """Write a `BatchHeader` in front of the records without making an object: a batch may have few records."""
    BATCH_HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - BATCH_OVERHEAD_BYTES,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        batching.compression | (TRANSACTIONAL_BIT if batching.transactional else 0),
        records_count - 1,
        base_ms,
        largest_ms,
        batching.producer_id,
        batching.producer_epoch,
        base_sequence,
        records_count,
    )
    batch[CRC_POSITION:CRC_START] = compute_crc(batch, 0, len(batch)).to_bytes(CRC_START - CRC_POSITION)


def _fields(column: pa.Array | None, count: int) -> Fields:
    return no_fields(count) if column is None else fields_of(column)


def _headers(column: pa.Array | None, count: int) -> _Headers:
    if column is None:
        none = np.zeros(count, np.int64)
        return _Headers(none, none, no_fields(0), no_fields(0))
    is_large = pa.types.is_large_list(column.type)
    offsets = offsets_of(column.buffers()[1], column, is_large=is_large)
    counts = np.diff(offsets)
    if column.null_count:
        counts[column.is_null().to_numpy(zero_copy_only=False)] = 0
    pairs = column.values
    return _Headers(offsets[:-1], counts, fields_of(pairs.field("key")), fields_of(pairs.field("value")))


# Records


@compiled_inline
def varint_bytes(number: int) -> int:
    """Return the size of a signed varint."""
    zigzag = (number << 1) ^ (number >> 63)
    if 0 <= zigzag < 0x80:
        return 1
    count = 1
    zigzag = (zigzag >> 7) & 0x1FFFFFFFFFFFFFF
    while zigzag:
        count += 1
        zigzag >>= 7
    return count


@compiled_inline
def write_varint(target: int, number: int) -> int:
    """Write a signed varint at an address; return the end address."""
    zigzag = (number << 1) ^ (number >> 63)
    if 0 <= zigzag < 0x80:
        store_byte(target, zigzag)
        return target + 1
    while zigzag < 0 or zigzag >= 0x80:
        store_byte(target, zigzag & 0x7F | 0x80)
        target += 1
        zigzag = (zigzag >> 7) & 0x1FFFFFFFFFFFFFF
    store_byte(target, zigzag)
    return target + 1


@compiled_inline
def write_field(target: int, source: int, size: int, source_end: int) -> int:
    """Write a field behind its size; return the end address."""
    target = write_varint(target, size)
    size = max(size, 0)
    copy_field(target, source, size, source_end)
    return target + size


@compiled_inline
def field_bytes(size: int) -> int:
    """Return the size of a field with its length prefix, which is -1 for null."""
    return varint_bytes(size) + max(size, 0)


@compiled
def cut(
    order: Longs,
    timestamps_ms: Longs,
    keys: Fields,
    values: Fields,
    headers: _Headers,
    bytes_max: int,
    sizes: Longs,
    batches: NDArray[np.int64],
) -> int:
    """Fill the size of each record (without length prefix) and the table of batches; return the number of batches."""
    key_sizes, value_sizes, header_firsts, header_counts = (
        keys.sizes,
        values.sizes,
        headers.firsts,
        headers.counts,
    )
    name_sizes, content_sizes = headers.keys.sizes, headers.values.sizes
    count, first, used, largest_ms = 0, 0, 0, 0
    for index in range(order.size):
        row = order[index]
        timestamp_ms = timestamps_ms[row]
        fields = (
            1 + field_bytes(key_sizes[row]) + field_bytes(value_sizes[row]) + varint_bytes(header_counts[row])
        )
        for header in range(header_firsts[row], header_firsts[row] + header_counts[row]):
            fields += field_bytes(name_sizes[header]) + field_bytes(content_sizes[header])
        size = fields + varint_bytes(timestamp_ms - timestamps_ms[order[first]]) + varint_bytes(index - first)
        if index > first and used + varint_bytes(size) + size > bytes_max:
            batches[count, 0], batches[count, 1], batches[count, 2], batches[count, 3] = (
                first,
                index,
                used,
                largest_ms,
            )
            count += 1
            first, used = index, 0
            size = fields + 2
        if index == first or timestamp_ms > largest_ms:
            largest_ms = timestamp_ms
        sizes[index] = size
        used += varint_bytes(size) + size
    if order.size:
        batches[count, 0], batches[count, 1], batches[count, 2], batches[count, 3] = (
            first,
            order.size,
            used,
            largest_ms,
        )
        count += 1
    return count


@compiled
def write(
    order: Longs,
    timestamps_ms: Longs,
    sizes: Longs,
    batches: NDArray[np.int64],
    keys: Fields,
    values: Fields,
    headers: _Headers,
    output: Bytes,
) -> None:
    """Write the records of batches that were cut, each behind space for its header."""
    key_base, value_base = address_of(keys.data), address_of(values.data)
    key_end, value_end = key_base + keys.data.size, value_base + values.data.size
    name_base, content_base = address_of(headers.keys.data), address_of(headers.values.data)
    name_end, content_end = name_base + headers.keys.data.size, content_base + headers.values.data.size
    key_positions, key_sizes, value_positions, value_sizes = (
        keys.positions,
        keys.sizes,
        values.positions,
        values.sizes,
    )
    header_firsts, header_counts = headers.firsts, headers.counts
    name_positions, name_sizes = headers.keys.positions, headers.keys.sizes
    content_positions, content_sizes = headers.values.positions, headers.values.sizes
    target = address_of(output)
    for batch in range(batches.shape[0]):
        target += BATCH_HEADER_BYTES
        first = batches[batch, 0]
        base_ms = timestamps_ms[order[first]]
        for index in range(first, batches[batch, 1]):
            row = order[index]
            target = write_varint(target, sizes[index])
            store_byte(target, 0)
            target = write_varint(target + 1, timestamps_ms[row] - base_ms)
            target = write_varint(target, index - first)
            target = write_field(target, key_base + key_positions[row], key_sizes[row], key_end)
            target = write_field(target, value_base + value_positions[row], value_sizes[row], value_end)
            target = write_varint(target, header_counts[row])
            for header in range(header_firsts[row], header_firsts[row] + header_counts[row]):
                target = write_field(target, name_base + name_positions[header], name_sizes[header], name_end)
                target = write_field(
                    target, content_base + content_positions[header], content_sizes[header], content_end
                )
