"""Writes batches to Delta tables: tasks write Parquet files, the driver commits them with the batch's name.

Files of failed tasks or commits are in no commit, so no reader sees them.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.batch import BatchName

_FILE_COLUMNS = "path string, bytes long, rows long, partition map<string,string>"
_FILE_TYPE = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        ("partition", pa.map_(pa.string(), pa.string())),
    ]
)
#: So many files a task keeps open. A process may have a thousand, and each file has buffers.
_OPEN_FILES_MAX = 100
_PARTITION_TYPES = (StringType, BooleanType, DateType, ByteType, ShortType, IntegerType, LongType)


def write_delta(rows: DataFrame, path: Path, partition_by: tuple[str, ...], batch: BatchName) -> None:
    """Write a batch in one commit, unless the table already has it.

    :raises FlowError: The rows do not fit the table.
    """
    check_partitions(rows.schema, partition_by)
    if open_table(path, rows.schema, partition_by, batch) is None:
        return
    ordered = rows.sortWithinPartitions(*partition_by) if partition_by else rows
    files = ordered.mapInArrow(_file_writer(str(path), partition_by), _FILE_COLUMNS).collect()
    commit_files(path, rows.schema, partition_by, batch, [file.asDict() for file in files])


def open_table(
    path: Path, schema: StructType, partition_by: tuple[str, ...], batch: BatchName
) -> DeltaTable | None:
    """Return the table, which is created if it does not exist; None if it already has the batch.

    :raises FlowError: It has other columns.
    """
    columns = delta_schema(schema)
    table = DeltaTable.create(path, columns, mode="ignore", partition_by=list(partition_by))
    written = table.transaction_version(batch.query_id)
    if written is not None and written >= batch.number:
        return None
    _check_fit(table, columns, partition_by)
    return table


def commit_files(
    path: Path,
    schema: StructType,
    partition_by: tuple[str, ...],
    batch: BatchName,
    files: Sequence[Mapping[str, Any]],
) -> None:
    """Append the files of a batch in one commit, unless the table already has it.

    :param files: From `files_of` or `partitioned_files`.
    :raises FlowError: The rows do not fit the table.
    """
    table = open_table(path, schema, partition_by, batch) if files else None
    if table is None:
        return
    table.create_write_transaction(
        [_added(file) for file in files],
        "append",
        delta_schema(schema),
        list(partition_by),
        commit_properties=properties_of(batch),
    )


def properties_of(batch: BatchName) -> CommitProperties:
    """Return the properties that name the batch in a commit."""
    return CommitProperties(app_transactions=[Transaction(batch.query_id, batch.number)])


def delta_schema(schema: StructType) -> Schema:
    """Return the columns, all nullable: a query's nullability may change.

    :raises FlowError: A type that Delta does not have.
    """
    try:
        return Schema.from_json(json.dumps(_nullable(schema.jsonValue())))
    except Exception as error:  # delta-rs documents no error types
        raise FlowError(f"the columns {schema.simpleString()} cannot be a Delta table's: {error}") from error


def _nullable(part: Any) -> Any:
    if isinstance(part, list):
        return [_nullable(element) for element in part]
    if not isinstance(part, dict):
        return part
    nullable = {"nullable": True, "containsNull": True, "valueContainsNull": True}
    fresh = {key: nullable.get(key, _nullable(element)) for key, element in part.items()}
    return fresh | {"metadata": {}} if "metadata" in part else fresh


def check_partitions(schema: StructType, partition_by: tuple[str, ...]) -> None:
    """Check that a table can be partitioned by these columns.

    :raises FlowError: With the invalid column.
    """
    for name in partition_by:
        if name not in schema.names:
            raise FlowError(f"partition_by: column {name} not found; the rows have {', '.join(schema.names)}")
        if not isinstance(schema[name].dataType, _PARTITION_TYPES):
            type_name = schema[name].dataType.simpleString()
            raise FlowError(
                f"partition_by: {name} is {type_name}; must be a string, a whole number, a date or a boolean"
            )
    if partition_by and len(partition_by) == len(schema.names):
        raise FlowError("partition_by names all columns; at least one must be left for the files")


def _check_fit(table: DeltaTable, schema: Schema, partition_by: tuple[str, ...]) -> None:
    there = {field.name: field.type for field in table.schema().fields}
    row_types = {field.name: field.type for field in schema.fields}
    if there != row_types:
        raise FlowError(
            f"the rows have the columns {_format_columns(row_types)}; the table has {_format_columns(there)}"
        )
    partitioned = tuple(table.metadata().partition_columns)
    if partitioned != partition_by:
        raise FlowError(
            f"partition_by is {list(partition_by)}; the table is partitioned by {list(partitioned)}"
        )


def _format_columns(columns: dict[str, Any]) -> str:
    return ", ".join(f"{name} {json.loads(kind.to_json())}" for name, kind in columns.items())


def _added(row: Mapping[str, Any]) -> AddAction:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    stats = json.dumps({"numRecords": row["rows"]})
    return AddAction(row["path"], row["bytes"], dict(row["partition"]), now_ms, True, stats)


def _file_writer(
    path: str, partition_by: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Yield the writer of a task: rows are sorted by partition, so it writes one file after the other."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = list(files_of(path, partition_by, batches))
        yield pa.RecordBatch.from_pylist(files, schema=_FILE_TYPE)

    return write


def files_of(
    path: str, partition_by: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[dict[str, Any]]:
    """Write the files of a task; return what a commit must say about each."""
    growing: _File | None = None
    for batch in batches:
        for values, part in _runs(batch, partition_by):
            if growing is not None and growing.values != values:
                yield growing.done()
                growing = None
            growing = growing or _File(path, values, part.schema)
            growing.write(part)
    if growing is not None:
        yield growing.done()


def partitioned_files(
    path: str, partition_by: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> list[dict[str, Any]]:
    """Write the files of a task whose rows are in no order: an open file for each partition, of the last ones."""
    files: dict[tuple[str | None, ...], _File] = {}
    written: list[dict[str, Any]] = []
    order = [(name, "ascending") for name in partition_by]
    for batch in batches:
        for values, part in _runs(batch.sort_by(order) if order else batch, partition_by):
            key = tuple(values.values())
            file = files.pop(key, None) or _File(path, values, part.schema)
            file.write(part)
            files[key] = file  # behind those that were written before
            if len(files) > _OPEN_FILES_MAX:
                written.append(files.pop(next(iter(files))).done())
    return written + [file.done() for file in files.values()]


def _runs(
    batch: pa.RecordBatch, partition_by: tuple[str, ...]
) -> Iterator[tuple[dict[str, str | None], pa.RecordBatch]]:
    """Yield runs of rows of one partition, without the partition columns."""
    if not batch.num_rows:
        return
    if not partition_by:
        yield {}, batch
        return
    texts = [pc.cast(batch.column(name), pa.string()).to_pylist() for name in partition_by]
    keys = list(zip(*texts, strict=True))
    rest = batch.drop_columns(list(partition_by))
    start = 0
    for index in range(1, len(keys) + 1):
        if index == len(keys) or keys[index] != keys[start]:
            yield dict(zip(partition_by, keys[start], strict=True)), rest.slice(start, index - start)
            start = index


class _File:
    """A Parquet file that is being written."""

    def __init__(self, folder: str, values: dict[str, str | None], schema: pa.Schema) -> None:
        self.values = values
        self._name = f"part-{uuid.uuid4()}.parquet"
        self._path = Path(folder, self._name)
        self._rows_count = 0
        self._writer = pq.ParquetWriter(self._path, schema, compression="snappy")

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self._rows_count += rows.num_rows

    def done(self) -> dict[str, Any]:
        self._writer.close()
        size = self._path.stat().st_size
        return {
            "path": self._name,
            "bytes": size,
            "rows": self._rows_count,
            "partition": list(self.values.items()),
        }
