"""Rows of the format `barnabas-batches`: batch headers, without decoding records."""

from collections.abc import Iterator, Mapping, Sequence

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

from barnabas.reading.header_rows import read_header_rows
from pyspark_barnabas.source.options import SourceOptions
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


def read_headers(
    task: InputPartition, options: SourceOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    for offset_range, raw in raw_batches(task, options):
        yield from read_header_rows(offset_range, raw, options, columns)
