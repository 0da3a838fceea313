"""Writes the rows of offset ranges to files: in this process, or in a task of another.

The table is not changed here. Where rows need columns that it does not have, writing ends, so that the owner of the
table can add them first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from barnabas.objects.store import ObjectStore
from barnabas.reading.offset_range import OffsetRange
from barnabas.tables.data_files import DataFile, DataFileWriter, new_data_path
from barnabas.tables.evolution import aligned, merged_schema
from barnabas.tables.rows import RecordRows, RowMaker
from barnabas.tables.settings import TableSettings
from barnabas.tables.source import TopicSource


class TopicRange(NamedTuple):
    """Offsets of a partition, and the id of its topic."""

    range: OffsetRange
    topic_id: bytes


@dataclass(frozen=True)
class WriteContext:
    """What rows are to be written for; it can be sent to other processes."""

    settings: TableSettings
    schema: pa.Schema  #: of the table
    file_schema: pa.Schema  #: the same columns as files have them
    data_directory: str  #: of files, below the location; empty, or with a slash at its end
    bytes_max: int  #: writing ends when so much of the log was read


@dataclass
class WrittenRanges:
    """Files, and how far the ranges were read."""

    files: list[DataFile] = field(default_factory=list)
    next_offsets: dict[int, int] = field(default_factory=dict)  #: by partition
    read_bytes: int = 0
    rejected_rows_count: int = 0
    missing: pa.Schema | None = None  #: the table's columns with those that later rows need
    is_complete: bool = True  #: False if there is more to read


class RangesWriter(Protocol):
    """Writes rows somewhere: here (`LocalRangesWriter`), or on a cluster."""

    def write(
        self, context: WriteContext, source: TopicSource, ranges: Sequence[TopicRange]
    ) -> WrittenRanges:
        """Write the rows of ranges, in order, as far as the context allows.

        :raises RegistryUnavailable: If a schema is needed, and the registry does not respond.
        """
        ...


class LocalRangesWriter:
    """A `RangesWriter` of this process."""

    def __init__(self, rows: RowMaker, store: ObjectStore, new_name: Callable[[], str]) -> None:
        """:param new_name: Returns a name that no file has."""
        self._rows = rows
        self._store = store
        self._new_name = new_name

    def write(
        self, context: WriteContext, source: TopicSource, ranges: Sequence[TopicRange]
    ) -> WrittenRanges:
        """Write rows of several ranges into the same files."""
        files = DataFileWriter(
            self._store,
            context.file_schema,
            lambda: new_data_path(context.data_directory, self._new_name),
            context.settings.target_file_bytes,
        )
        written = WrittenRanges()
        try:
            for offset_range, topic_id in ranges:
                partition = offset_range.tp.partition
                for fetched in source.fetch(offset_range, topic_id):
                    for records in fetched.batches:
                        if not self._write_records(context.schema, records, files, written):
                            written.next_offsets[partition] = records.column("offset")[0].as_py()
                            return self._ended(files, written)
                    written.next_offsets[partition] = fetched.next_offset
                    written.read_bytes += fetched.size_bytes
                    if written.read_bytes >= context.bytes_max:
                        return self._ended(files, written)
        except BaseException:
            files.discard()
            raise
        written.files = files.close()
        return written

    def _ended(self, files: DataFileWriter, written: WrittenRanges) -> WrittenRanges:
        written.files, written.is_complete = files.close(), False
        return written

    def _write_records(
        self, schema: pa.Schema, records: pa.RecordBatch, files: DataFileWriter, written: WrittenRanges
    ) -> bool:
        """Write the rows of records; False, and no row is written, if the table lacks columns."""
        fitted: list[FittedRows] = []
        for rows in self._rows.rows(records):
            known = written.missing or schema
            fitted.append(fit(rows, known))
            if fitted[-1].schema != known:
                written.missing = fitted[-1].schema
        if written.missing is not None:
            return False
        for each in fitted:
            files.write(aligned(each.batch, schema))
            written.rejected_rows_count += each.rejected_count
        return True


class FittedRows(NamedTuple):
    """Rows without the columns that the table cannot take."""

    batch: pa.RecordBatch
    schema: pa.Schema  #: the table's columns with those that the rows need
    rejected_count: int  #: rows with an error


def fit(rows: RecordRows, schema: pa.Schema) -> FittedRows:
    """Fit rows to a table with this schema."""
    batch = rows.batch()
    merged = merged_schema(schema, batch.schema)
    if merged.mismatches:
        rows = rows.rejected(merged.mismatches)
        batch = rows.batch()
        merged = merged_schema(schema, batch.schema)
    return FittedRows(batch, merged.schema, len(rows) - rows.errors.null_count)


def joined(parts: Sequence[WrittenRanges], schema: pa.Schema) -> WrittenRanges:
    """Return what several tasks wrote as one.

    :param schema: Of the table.
    """
    result = WrittenRanges()
    missing = schema
    for part in parts:
        result.files += part.files
        result.next_offsets |= part.next_offsets
        result.read_bytes += part.read_bytes
        result.rejected_rows_count += part.rejected_rows_count
        result.is_complete = result.is_complete and part.is_complete
        if part.missing is not None:
            missing = merged_schema(missing, part.missing).schema
    result.missing = None if missing == schema else missing
    return result
