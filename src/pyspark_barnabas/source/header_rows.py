"""Rows of the format `barnabas-batches`: batch headers, without decoding records.

A batch belongs to the range with its first offset, so that no split shows it twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader, crc_matches, iterate_headers
from pyspark_barnabas.source.options import SourceOptions
from pyspark_barnabas.source.rows import AbortedRanges
from pyspark_barnabas.source.tasks import raw_batches

#: The columns with their Spark types.
BATCH_TYPES: Mapping[str, DataType] = {
    "topic": StringType(),
    "partition": IntegerType(),
    "baseOffset": LongType(),
    "lastOffset": LongType(),
    "recordsCount": IntegerType(),
    "sizeBytes": IntegerType(),
    "compression": StringType(),
    "timestampType": IntegerType(),
    "maxTimestamp": TimestampType(),
    "leaderEpoch": IntegerType(),
    "producerId": LongType(),
    "producerEpoch": ShortType(),
    "baseSequence": IntegerType(),
    "isTransactional": BooleanType(),
    "isControl": BooleanType(),
    "isAborted": BooleanType(),
    "crcMatches": BooleanType(),
}

_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "smallint": pa.int16(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}

_FROM_HEADER: Mapping[str, Callable[[BatchHeader], object]] = {
    "baseOffset": lambda header: header.base_offset,
    "lastOffset": lambda header: header.last_offset,
    "recordsCount": lambda header: header.records_count,
    "sizeBytes": lambda header: header.size_bytes,
    "compression": lambda header: header.compression.name.lower(),
    "timestampType": lambda header: int(header.is_log_append_time),
    "maxTimestamp": lambda header: (
        None if header.max_timestamp == NO_TIMESTAMP else header.max_timestamp * 1_000
    ),
    "leaderEpoch": lambda header: header.partition_leader_epoch,
    "producerId": lambda header: header.producer_id,
    "producerEpoch": lambda header: header.producer_epoch,
    "baseSequence": lambda header: header.base_sequence,
    "isTransactional": lambda header: header.is_transactional,
    "isControl": lambda header: header.is_control,
}


def read_headers(
    task: InputPartition, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    for offset_range, (batches, _, aborted) in raw_batches(task, options):
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
    options: SourceOptions,
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

    types = {column: _ARROW_TYPES[BATCH_TYPES[column].simpleString()] for column in columns}
    arrays = [pa.array(values(column), types[column]) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(types.items())))
