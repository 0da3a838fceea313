"""A DataFrame's rows, as Spark hands them to a task, taken apart for records. No IO."""

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

#: More than lengths and deltas of a record take.
_RECORD_OVERHEAD_BYTES = 21
_US_PER_MS = 1_000
#: Rows are worked on in groups of so many bytes: small ones make small batches, large ones wait long.
_GROUP_BYTES = 4 * 1024 * 1024


class Rows(NamedTuple):
    """Some rows, and where they want to go."""

    columns: Columns
    sizes: Longs  #: at least what each takes in a batch, in bytes
    asked: pa.Array | None  #: int32, partitions
    topics: tuple[tuple[str, Longs | None], ...]  #: each topic with its rows; None for all


def grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, none of them empty."""
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
    """Take a batch apart; its columns were checked before (`check_schema`).

    :raises SinkError: For a row that names no topic where it should.
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
    found: Longs = pc.fill_null(stamps, now_ms * _US_PER_MS).to_numpy(zero_copy_only=False) // _US_PER_MS
    return found


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
        message = "column topic is null in a row; option topic would say where all rows go"
        raise SinkError(message)
    encoded = column.dictionary_encode()
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    names = encoded.dictionary.to_pylist()
    return tuple((name, np.flatnonzero(indices == number)) for number, name in enumerate(names))
