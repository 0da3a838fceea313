"""Rows of batch headers, in Arrow columns, without decoding records.

A batch belongs to the range with its first offset, so that no split shows it twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import ReadOptions
from barnabas.reading.range_reader import RawBatches
from barnabas.reading.rows import AbortedRanges
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.arrow_types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, US_PER_MS
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader, crc_matches, iterate_headers

#: The columns with their Arrow types.
HEADER_COLUMNS: Mapping[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "baseOffset": pa.int64(),
    "lastOffset": pa.int64(),
    "recordsCount": pa.int32(),
    "sizeBytes": pa.int32(),
    "compression": pa.string(),
    "timestampType": pa.int32(),
    "maxTimestamp": pa.timestamp("us", "UTC"),
    "leaderEpoch": pa.int32(),
    "producerId": pa.int64(),
    "producerEpoch": pa.int16(),
    "baseSequence": pa.int32(),
    "isTransactional": pa.bool_(),
    "isControl": pa.bool_(),
    "isAborted": pa.bool_(),
    "crcMatches": pa.bool_(),
}

_FROM_HEADER: Mapping[str, Callable[[BatchHeader], object]] = {
    "baseOffset": lambda header: header.base_offset,
    "lastOffset": lambda header: header.last_offset,
    "recordsCount": lambda header: header.records_count,
    "sizeBytes": lambda header: header.size_bytes,
    "compression": lambda header: header.compression.name.lower(),
    "timestampType": lambda header: int(header.is_log_append_time),
    "maxTimestamp": lambda header: _time_us(header.max_timestamp),
    "leaderEpoch": lambda header: header.partition_leader_epoch,
    "producerId": lambda header: header.producer_id,
    "producerEpoch": lambda header: header.producer_epoch,
    "baseSequence": lambda header: header.base_sequence,
    "isTransactional": lambda header: header.is_transactional,
    "isControl": lambda header: header.is_control,
}


def _time_us(time_ms: int) -> int | None:
    """Return a time in microseconds; None without a time, or for one that they cannot hold."""
    is_time = time_ms != NO_TIMESTAMP and TIMESTAMP_MS_MIN <= time_ms <= TIMESTAMP_MS_MAX
    return time_ms * US_PER_MS if is_time else None


def read_header_rows(
    offset_range: OffsetRange, raw: RawBatches, options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of fetched batches, if there are any."""
    batches, _, aborted = raw
    headers = [
        (position, header)
        for position, header in iterate_headers(batches)
        if offset_range.low <= header.base_offset < offset_range.high
    ]
    if headers:
        yield _rows(batches, headers, offset_range.tp, options, aborted, columns)


def _rows(
    batches: Buffer,
    headers: Sequence[tuple[int, BatchHeader]],
    tp: TopicPartition,
    options: ReadOptions,
    aborted: AbortedRanges,
    columns: Sequence[str],
) -> pa.RecordBatch:
    def values(column: str) -> list[object]:
        match column:
            case "topic":
                return [tp.topic] * len(headers)
            case "partition":
                return [tp.partition] * len(headers)
            case "isAborted":
                if options.isolation is Isolation.READ_UNCOMMITTED:
                    return [None] * len(headers)
                return [not (header.is_control or aborted.admits(header)) for _, header in headers]
            case "crcMatches":
                if not options.check_crcs:
                    return [None] * len(headers)
                return [crc_matches(batches, position, header) for position, header in headers]
        read_column = _FROM_HEADER[column]
        return [read_column(header) for _, header in headers]

    types = {column: HEADER_COLUMNS[column] for column in columns}
    arrays = [pa.array(values(column), types[column]) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(types.items())))
