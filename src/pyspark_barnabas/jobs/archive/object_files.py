"""Parquet files in an object store, written and read by Spark tasks.

Spark's own readers and writers need jars for object stores. Here the workers use obstore: settings travel with the
tasks, so Spark shows neither them nor the objects in its plans, and each worker adds those of its own environment.
"""

import hashlib
import io
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from barnabas.objects.location import LocationError, ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectNotFound, ObjectStore, ObjectStoreError
from barnabas.reading.rows import arrow_schema_of
from pyspark_barnabas.jobs.archive.manifest import RECORDS_DDL, ArchivedFile, ArchiveError
from pyspark_barnabas.jobs.common.session import distribute
from pyspark_barnabas.plain_errors import BarnabasError
from pyspark_barnabas.sink.columns import grouped

#: Columns of the files, in the order of `RECORDS_DDL`; topic and date are in their names.
_FILE_SCHEMA = arrow_schema_of(
    ["key", "value", "partition", "offset", "timestamp", "timestampType", "headers"]
)
_ROWS_SCHEMA = pa.schema([*_FILE_SCHEMA, pa.field("topic", pa.string()), pa.field("date", pa.string())])
#: Arrow bytes of a row group, which writers and readers hold in memory.
_ROW_GROUP_BYTES = 32 << 20
#: Arrow bytes of a file; compressed it is smaller.
_FILE_BYTES_MAX = 1 << 30
_OWN_FILE = re.compile(r"/part-[0-9a-f]{32}\.parquet$")
_READ_ROWS = 10_000
_TASKS_PER_CORE = 4
_WRITTEN = pa.schema(
    [
        ("key", pa.string()),
        ("topic", pa.string()),
        ("date", pa.string()),
        ("size_bytes", pa.int64()),
        ("sha256", pa.string()),
        ("records_count", pa.int64()),
    ]
)
_WRITTEN_DDL = "key string, topic string, date string, size_bytes bigint, sha256 string, records_count bigint"


@dataclass(frozen=True)
class ObjectFiles:
    """Files below a location, for tasks on this machine and on others."""

    location: ObjectLocation
    settings: StoreSettings

    def write(self, records: DataFrame, directory: str) -> tuple[ArchivedFile, ...]:
        """Write the rows to files below `directory`, and return them; each has one topic and day.

        Files of failed tasks stay behind; they have other names.
        """
        rows = records.select(*_ROWS_SCHEMA.names).sortWithinPartitions(
            "topic", "date", "partition", "offset"
        )
        written = rows.mapInArrow(partial(self._write_task, directory), _WRITTEN_DDL).collect()
        return tuple(sorted(ArchivedFile(*row) for row in written))

    def read(self, spark: SparkSession, files: Sequence[ArchivedFile]) -> DataFrame:
        """Return the rows of files; a task fails if a file is missing or does not have its size."""
        if not files:
            return spark.createDataFrame([], RECORDS_DDL)
        tasks_max = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
        tasks = distribute(files, lambda file: file.size_bytes, tasks_max)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(partial(self._read_tasks, tasks), RECORDS_DDL)

    def _write_task(self, directory: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_for_users():
            store = open_store(self.location, self.settings)
            for file in written_files(store, directory, grouped(batches)):
                yield pa.RecordBatch.from_pylist([file._asdict()], _WRITTEN)

    def _read_tasks(
        self, tasks: Sequence[Sequence[ArchivedFile]], numbers: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        with errors_for_users():
            store = open_store(self.location, self.settings)
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    for file in tasks[number]:
                        yield from read_file(store, self.location, file)


@contextmanager
def errors_for_users() -> Iterator[None]:
    """Raise expected errors of a task as errors that Spark shows without a traceback."""
    try:
        yield
    except (ArchiveError, LocationError, ObjectStoreError) as error:
        raise BarnabasError(str(error)) from None


def is_own_file(key: str) -> bool:
    """Whether a file has a name as tasks give it, and Spark does not."""
    return _OWN_FILE.search(key) is not None


# Writing


def written_files(
    store: ObjectStore, directory: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[ArchivedFile]:
    """Write rows that are sorted by topic and date; start a new file when either changes, or the file is large."""
    for (topic, date, _), slices in groupby(slices_of_files(batches), key=itemgetter(0)):
        key = posixpath.join(directory, f"topic={topic}", f"date={date}", f"part-{uuid4().hex}.parquet")
        assert is_own_file(key)
        parquet = _ParquetChunks(part for _, part in slices)
        size_bytes = store.write(key, parquet)
        yield ArchivedFile(key, topic, date, size_bytes, parquet.digest.hexdigest(), parquet.records_count)


def slices_of_files(
    batches: Iterable[pa.RecordBatch], file_bytes_max: int = _FILE_BYTES_MAX
) -> Iterator[tuple[tuple[str, str, int], pa.RecordBatch]]:
    """Split batches into slices of one topic and day; with each yield these and the number of the file."""
    number, size_bytes, previous = 0, 0, None
    for batch in batches:
        topics, dates = (batch.column(name) for name in ("topic", "date"))
        ends = {end for column in (topics, dates) for end in pc.run_end_encode(column).run_ends.to_pylist()}
        start = 0
        for end in sorted(ends):
            current = (topics[start].as_py(), dates[start].as_py())
            if current != previous or size_bytes >= file_bytes_max:
                number, size_bytes, previous = number + 1, 0, current
            part = batch.slice(start, end - start)
            size_bytes += part.nbytes
            yield (*current, number), part
            start = end


class _ParquetChunks:
    """A Parquet file as chunks of bytes: one for each row group, and one for the footer.

    `digest` (SHA-256) and `records_count` are of what has been yielded.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.digest = hashlib.sha256()
        self.records_count = 0

    def __iter__(self) -> Iterator[bytes]:
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, _FILE_SCHEMA, compression="zstd") as writer:
            group: list[pa.RecordBatch] = []
            for batch in self._batches:
                group.append(batch.select(_FILE_SCHEMA.names).cast(_FILE_SCHEMA))
                if sum(part.nbytes for part in group) >= _ROW_GROUP_BYTES:
                    yield self._written(writer, sink, group)
                    group = []
            if group:
                yield self._written(writer, sink, group)
        yield self._drained(sink)

    def _written(self, writer: pq.ParquetWriter, sink: io.BytesIO, group: list[pa.RecordBatch]) -> bytes:
        table = pa.Table.from_batches(group)
        self.records_count += table.num_rows
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        return self._drained(sink)

    def _drained(self, sink: io.BytesIO) -> bytes:
        chunk = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        self.digest.update(chunk)
        return chunk


# Reading


def read_file(store: ObjectStore, location: ObjectLocation, file: ArchivedFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    :raises ArchiveError: The file is missing, does not have its size, or is damaged.
    """
    name = location / file.key
    try:
        size_bytes = store.size_bytes(file.key)
        if size_bytes != file.size_bytes:
            message = f"{name} has {size_bytes} bytes, but had {file.size_bytes} when it was archived"
            raise ArchiveError(message)
        with store.open(file.key) as source:
            for batch in pq.ParquetFile(source).iter_batches(_READ_ROWS):
                constants = [pa.repeat(pa.scalar(text), batch.num_rows) for text in (file.topic, file.date)]
                columns = batch.select(_FILE_SCHEMA.names).cast(_FILE_SCHEMA).columns
                yield pa.RecordBatch.from_arrays([*columns, *constants], schema=_ROWS_SCHEMA)
    except ObjectNotFound:
        raise ArchiveError(f"{name} does not exist, but is part of the archive") from None
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, ObjectStoreError):
            raise
        raise ArchiveError(f"{name} is damaged: {error}") from None
