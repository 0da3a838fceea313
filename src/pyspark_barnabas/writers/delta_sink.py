"""The sink of the format `barnabas-delta`: tasks write files, the driver commits them with the batch's name.

Spark calls it in tasks to write and in a fresh process on the driver to commit, so all state travels in the messages of
the tasks. A repeated batch finds its name in the table and is not committed again.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BooleanType, StructType

from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import OptionError, option_error
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.sink.writers import BATCH_PROPERTY, QUERY_PROPERTY
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.delta import check_partitions, commit_files, delta_schema, partitioned_files
from pyspark_barnabas.writers.delta_changes import KeyedChanges, commit_changes

_OPTIONS = ("path", "partitionBy", "keys", "sequenceBy", "deleteColumn")
#: The directory in the table with the files of changes, in a directory for each query; readers and VACUUM ignore names
#: that begin with an underscore.
_STAGING = "_barnabas_changes"

Messages = Sequence[WriterCommitMessage | None]


@dataclass
class FilesWritten(WriterCommitMessage):
    """The files of a task, and the batch that they belong to."""

    batch: BatchName
    files: list[dict[str, Any]]


@dataclass(frozen=True)
class DeltaOptions:
    """The options of a sink."""

    path: Path
    partition_by: tuple[str, ...] = ()
    changes: KeyedChanges | None = None  #: None if rows are appended

    def files_of(self, query_id: str) -> Path:
        """Return the directory that the tasks of a query write to."""
        return self.path if self.changes is None else self.path / _STAGING / query_id


def delta_options(options: Mapping[str, str]) -> DeltaOptions:
    """Parse the options of a sink.

    :raises OptionError: For an invalid option.
    """
    given = {name.lower(): value for name, value in options.items()}
    check_option_names(given, _OPTIONS)
    path = given.get("path", "").removeprefix("file://")
    if not path.startswith("/"):
        raise option_error(
            "path", path, "the absolute path of the table is expected, which all workers can access"
        )
    partition_by, keys = _names(given.get("partitionby", "")), _names(given.get("keys", ""))
    sequence, deletes = given.get("sequenceby"), given.get("deletecolumn")
    if not keys:
        for name, value in (("sequenceBy", sequence), ("deleteColumn", deletes)):
            if value is not None:
                raise option_error(name, value, "it requires option keys, the key columns of the changes")
        return DeltaOptions(Path(path), partition_by)
    if sequence is None:
        raise OptionError(
            "option sequenceBy is missing: the column that orders the changes of a key, such as offset"
        )
    return DeltaOptions(Path(path), partition_by, KeyedChanges(keys, sequence, deletes))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "DeltaStreamWriter":
    """Return the writer of `df.writeStream`; Spark requests it once per micro-batch.

    :raises OptionError: For invalid options, and for columns that do not fit them.
    """
    if overwrite:
        raise OptionError(
            "output mode complete is not supported: a table is not replaced; use append or update"
        )
    parsed = delta_options(options)
    try:
        check_partitions(schema, parsed.partition_by)
        stored = schema if parsed.changes is None else _checked(schema, parsed.changes)
        delta_schema(stored)
    except FlowError as error:
        raise OptionError(str(error)) from None
    return DeltaStreamWriter(parsed, stored)


def _checked(schema: StructType, changes: KeyedChanges) -> StructType:
    """Return the columns that are stored."""
    for name in (*changes.keys, changes.sequence, *filter(None, [changes.delete_column])):
        if name not in schema.names:
            raise OptionError(f"column {name} not found; the rows have {', '.join(schema.names)}")
    if changes.delete_column is None:
        return schema
    if not isinstance(schema[changes.delete_column].dataType, BooleanType):
        kind = schema[changes.delete_column].dataType.simpleString()
        raise option_error("deleteColumn", changes.delete_column, f"a boolean column is expected, not {kind}")
    return StructType([field for field in schema.fields if field.name != changes.delete_column])


class DeltaStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: DeltaOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "outside of a task"
        query, number = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
        assert query, f"{QUERY_PROPERTY} is missing"
        assert number, f"{BATCH_PROPERTY} is missing"
        folder = self.options.files_of(query)
        folder.mkdir(parents=True, exist_ok=True)
        partition_by = () if self.options.changes else self.options.partition_by
        files = partitioned_files(str(folder), partition_by, iterator)
        return FilesWritten(BatchName(query, int(number)), files)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if isinstance(message, FilesWritten)]
        files = [file for message in written for file in message.files]
        if not files:
            return
        path, partition_by, changes = self.options.path, self.options.partition_by, self.options.changes
        batch = written[0].batch
        if changes is None:
            commit_files(path, self.schema, partition_by, batch, files)
            return
        staged = [self.options.files_of(batch.query_id) / file["path"] for file in files]
        commit_changes(path, self.schema, partition_by, batch, changes, staged)
        self._remove_staged(batch)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Remove staged changes; leave other files, because a commit whose answer was lost may have them. No reader
        sees files without a commit.
        """
        written = [message for message in messages if isinstance(message, FilesWritten)]
        if written and self.options.changes is not None:
            self._remove_staged(written[0].batch)

    def _remove_staged(self, batch: BatchName) -> None:
        """Remove the files of all tasks of the query, also those of failed and killed ones: no batch needs them."""
        shutil.rmtree(self.options.files_of(batch.query_id), ignore_errors=True)
