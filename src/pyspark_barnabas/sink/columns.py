"""Splits a DataFrame's rows, as a task gets them from Spark, into the fields of records. No IO."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.wire.records.arrow_rows import Columns
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.options import SinkOptions
from pyspark_barnabas.sink.partitioning import Longs, byte_spans

#: Upper bound of a record's lengths and deltas.
_RECORD_OVERHEAD_BYTES = 21
_US_PER_MS = 1_000
#: Rows are processed in groups of this size: smaller ones make small batches, larger ones wait long.
_GROUP_BYTES = 4 * 1024 * 1024


class Rows(NamedTuple):
    """Rows with their target topics and partitions."""

    columns: Columns
    sizes: Longs  #: lower bound of the size of each row in a batch, in bytes
    asked: pa.Array | None  #: int32, requested partitions
    topics: tuple[tuple[str, Longs | None], ...]  #: each topic with its rows; None for all


def grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer, non-empty batches."""
    waiting: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= _GROUP_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def read_rows(batch: pa.RecordBatch, options: SinkOptions) -> Rows:
    """Split a batch into fields; `check_schema` has checked its columns.

    :raises SinkError: For a row without a required topic.
    """
    keys = _bytes(batch, "key")
    values = _bytes(batch, "value")
    assert values is not None
    columns = Columns(keys, values, _column(batch, "headers"), _timestamps_ms(batch, options))
    return Rows(columns, _sizes(columns), _column(batch, "partition"), _topics(batch, options))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def _bytes(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    column = _column(batch, name)
    if column is None or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column
    return column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())


def _timestamps_ms(batch: pa.RecordBatch, options: SinkOptions) -> Longs:
    now_ms = time.time_ns() // 1_000_000
    column = _column(batch, "timestamp") if options.include_timestamp else None
    if column is None:
        return np.full(batch.num_rows, now_ms, np.int64)
    stamps = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    timestamps: Longs = pc.fill_null(stamps, now_ms * _US_PER_MS).to_numpy(zero_copy_only=False) // _US_PER_MS
    return timestamps


def _sizes(columns: Columns) -> Longs:
    sizes = byte_spans(columns.values)[1] + _RECORD_OVERHEAD_BYTES
    if columns.keys is not None:
        sizes += byte_spans(columns.keys)[1]
    if columns.headers is not None:
        counts = pc.fill_null(pc.list_value_length(columns.headers), 0).to_numpy(zero_copy_only=False)
        total = columns.headers.nbytes
        sizes += counts.astype(np.int64) * (total // max(1, int(counts.sum())))
    return sizes


def _topics(batch: pa.RecordBatch, options: SinkOptions) -> tuple[tuple[str, Longs | None], ...]:
    if options.topic is not None:
        return ((options.topic, None),)
    column = _column(batch, "topic")
    assert column is not None
    if column.null_count:
        message = "column topic is null in a row; set it in every row, or set option topic for all rows"
        raise SinkError(message)
    encoded = column.dictionary_encode()
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    names = encoded.dictionary.to_pylist()
    return tuple((name, np.flatnonzero(indices == number)) for number, name in enumerate(names))
