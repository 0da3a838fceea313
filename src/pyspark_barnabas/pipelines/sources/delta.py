"""Delta tables as streams: the files added by commits, micro-batch by micro-batch."""

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Changes, DeltaInput
from pyspark_barnabas.pipelines.sources.delta_log import (
    AddedFile,
    DeltaOffset,
    added,
    between,
    check_readable,
    end_of,
)
from pyspark_barnabas.source.stream_reader import HAS_LIMITS, STREAM_READER_BASES, spark_limits

_NAME = "barnabas-delta-files"
#: A task costs about 50 ms, so small files share one.
_TASK_BYTES = 128 * 2**20
_BATCH_ROWS = 10_000
#: Timestamps are in UTC, which Spark 4.1 assumes.
_ZONE: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def delta_stream(spark: SparkSession, source: DeltaInput) -> DataFrame:
    """Return a table's rows, and appended ones.

    :raises FlowError: The table does not exist, or cannot be read here.
    """
    if not DeltaTable.is_deltatable(str(source.path)):
        raise FlowError(f"{source.label}: Delta table not found")
    table = DeltaTable(source.path)
    check_readable(table, source.label)
    if source.batch_files_max is not None and not HAS_LIMITS:
        raise FlowError("batch_files_max of a table needs Spark 4.2: leave it out in Spark 4.1")
    spark.dataSource.register(_DeltaFiles)
    options = {"path": str(source.path), "starting": source.starting, "changes": source.changes.value}
    if source.batch_files_max is not None:
        options["filesMax"] = str(source.batch_files_max)
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    return spark.readStream.format(_NAME).schema(schema).options(**options).load()


class _DeltaFiles(DataSource):
    """Registered in the session of a flow only."""

    @classmethod
    def name(cls) -> str:
        return _NAME

    def streamReader(self, schema: StructType) -> "_DeltaStream":  # noqa: N802
        return _DeltaStream(self.options, schema)


@dataclass
class _Files(InputPartition):
    """The files of a task."""

    files: Sequence[AddedFile]


class _DeltaStream(STREAM_READER_BASES):  # type: ignore[misc]
    """Offsets are positions in the log; the same offsets always give the same files."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._table = Path(options["path"])
        self._starting = options["starting"]
        self._changes = Changes(options["changes"])
        self._files_max = int(options["filesMax"]) if "filesMax" in options else None
        self._schema = schema

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self._start_at(DeltaTable(self._table).version())._asdict()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return (
            spark_limits.ReadAllAvailable()
            if self._files_max is None
            else spark_limits.ReadMaxFiles(self._files_max)
        )

    def latestOffset(self, start: dict[str, int] | None = None, limit: object = None) -> dict[str, int]:  # noqa: N802
        """Return the end of the next micro-batch; Spark 4.1 passes neither start nor limit, and gets the end of
        everything.
        """
        limited = HAS_LIMITS and limit is not None and not isinstance(limit, spark_limits.ReadAllAvailable)
        begun = DeltaOffset(**(start or self.initialOffset()))
        return end_of(self._table, begun, self._files_max if limited else None, self._changes)._asdict()

    def reportLatestOffset(self) -> None:  # noqa: N802
        """Return None: the number of remaining rows is unknown."""
        return

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: rows that are appended meanwhile are read, too."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return tasks of about equal size."""
        begun, ended = DeltaOffset(**start), DeltaOffset(**end)
        if begun.snapshot > ended.snapshot:
            # Spark does not keep the start of a query: to repeat the first batch it asks for it again, and Spark 4.1
            # always asks for it after the end. No other start is of a later snapshot than its end.
            begun = self._start_at(ended.snapshot)
        files = between(self._table, begun, ended, self._changes)
        return [_Files(group) for group in split_into_tasks(files, _TASK_BYTES)]

    def read(self, partition: _Files) -> Iterator[pa.RecordBatch]:
        for file in partition.files:
            yield from rows_of(self._table, file, to_arrow_schema(self._schema, **_ZONE))

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: Spark stores the offset."""

    def stop(self) -> None:
        """Do nothing: no resource is open."""

    def _start_at(self, version: int) -> DeltaOffset:
        """Return the start of a query that begins at a version: before all its rows, or behind them."""
        files = added(self._table, version, version, self._changes) if self._starting == "latest" else ()
        return DeltaOffset(version, version, len(files or ()))


def split_into_tasks(files: Iterable[AddedFile], size_bytes: int) -> list[list[AddedFile]]:
    """Return the files in order, in groups of at least that many bytes, except for the last."""
    shares: list[list[AddedFile]] = []
    size = size_bytes
    for file in files:
        if size >= size_bytes:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += file.size_bytes
    return shares


def rows_of(table: Path, file: AddedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows with the columns of the table; missing ones are partition values, or null."""
    path = table / file.path.removeprefix("file://")
    try:
        # Spark writes times of 96 bits by default; as nanoseconds, some would be others, such as 9999-12-31
        opened = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except FileNotFoundError:
        raise FlowError(
            f"delta {table}: file {file.path} no longer exists; VACUUM removes files that were rewritten, and "
            "their rows were not read yet"
        ) from None
    with opened:
        there = set(opened.schema_arrow.names)
        columns = [name for name in schema.names if name in there]
        for batch in opened.iter_batches(_BATCH_ROWS, columns=columns):
            arrays = [
                batch.column(field.name).cast(field.type)
                if field.name in there
                else _repeated(file.partition.get(field.name), field.type, batch.num_rows)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _repeated(text: str | None, kind: pa.DataType, count: int) -> pa.Array:
    value = pa.scalar(text or None, pa.string()).cast(kind)  # Delta reads an empty text as null
    return pa.repeat(value, count)
