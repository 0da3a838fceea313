"""Keeps the table of one topic: reads new records, writes their rows to files, and commits them with the offsets.

The offsets are in the table, so a service that was killed continues where the last commit ended, and files that it did
not commit belong to no table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.objects.store import ObjectStore
from barnabas.reading.offset_range import OffsetRange
from barnabas.tables.data_files import DataFile, DataFileWriter
from barnabas.tables.errors import TableError
from barnabas.tables.evolution import aligned, merged_schema
from barnabas.tables.maintenance import TableMaintenance
from barnabas.tables.rows import RecordRows, RowMaker
from barnabas.tables.settings import TableSettings
from barnabas.tables.source import FetchedRecords, ReadableOffsets, TopicSource
from barnabas.tables.table import OffsetAdvance, StoredTable, TableAccess, TopicIdentity

#: A commit has at least the records that were fetched together, and ends when so much of the log was read.
_COMMIT_BYTES_MAX = 256 * 1024 * 1024
#: Small files are joined after so many commits.
_JOIN_COMMITS = 8
#: How often rows and files that are too old are deleted.
_EXPIRE_INTERVAL_MS = 3_600_000


class TableFactory(NamedTuple):
    """Opens and creates tables of a format."""

    open: Callable[[TableAccess], StoredTable | None]
    create: Callable[[TableAccess, pa.Schema], StoredTable]


@dataclass
class TableStatistics:
    """What was done for a table since the service started."""

    commits_count: int = 0
    rows_count: int = 0
    rejected_rows_count: int = 0  #: those whose key or value could not be decoded
    read_bytes: int = 0
    lost_records_count: int = 0  #: offsets that were removed from the topic before they were read
    joined_files_count: int = 0
    deleted_rows_count: int = 0
    deleted_files_count: int = 0


class _Reached(NamedTuple):
    """The offsets that one pass has reached."""

    advances: dict[int, OffsetAdvance]
    files: list[DataFile]
    is_complete: bool  #: False if there are more records


class TopicTable:
    """The table of a topic, as its settings say. For one thread at a time."""

    def __init__(
        self,
        settings: TableSettings,
        access: Callable[[TopicIdentity], TableAccess],
        factory: TableFactory,
        rows: RowMaker,
        store: ObjectStore,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.counts = TableStatistics()
        self._access = access
        self._factory = factory
        self._rows = rows
        self._store = store
        self._clock = clock
        self._table: StoredTable | None = None
        self._identity: TopicIdentity | None = None
        #: Offsets up to which there was nothing but transaction markers and aborted records.
        self._empty_up_to: dict[int, int] = {}
        self._commits_since_join = 0
        self._expired_ms: int | None = None

    def advance(self, source: TopicSource) -> bool:
        """Commit new records; return whether the table has all records that there were at the beginning.

        :raises TableError: If the table cannot be kept.
        :raises ConcurrentCommit: If another writer was first; nothing was committed.
        """
        partitions = source.partitions(self.settings.topic)
        self._open(TopicIdentity(self.settings.topic, next(iter(partitions.values()))))
        known = {} if self._table is None else self._table.next_offsets([tp.partition for tp in partitions])
        bounds = source.bounds(partitions)
        ranges = [self._range(tp, known.get(tp.partition), bounds[tp]) for tp in sorted(partitions)]
        todo = [found for found in ranges if found.offsets_count > 0]
        if not todo:
            return True
        reached = self._write(source, partitions, todo, known)
        if reached.files:
            assert self._table is not None, "files belong to a table"
            # if it fails, the files stay until they are cleaned up: the commit may have succeeded nevertheless
            self._table.append(reached.files, reached.advances)
            self.counts.commits_count += 1
            self.counts.rows_count += sum(file.rows_count for file in reached.files)
            self._commits_since_join += 1
        else:
            self._empty_up_to |= {partition: after for partition, (_, after) in reached.advances.items()}
        return reached.is_complete

    def maintain(self) -> None:
        """Join files and delete what is too old, if it is time for that.

        :raises ConcurrentCommit: If another writer was first; a later call does the rest.
        """
        if self._table is None:
            return
        maintenance = TableMaintenance(self._table, self._store, self.settings)
        if self._commits_since_join >= _JOIN_COMMITS:
            self.counts.joined_files_count += maintenance.join_files()
            self._commits_since_join = 0
        now_ms = self._clock.wall_ms()
        if self._expired_ms is None or now_ms - self._expired_ms >= _EXPIRE_INTERVAL_MS:
            expired = maintenance.expire(now_ms)
            self.counts.deleted_rows_count += expired.deleted_rows_count
            self.counts.deleted_files_count += expired.deleted_files_count
            self._expired_ms = now_ms

    def _open(self, identity: TopicIdentity) -> None:
        """Open the table or read its last version."""
        if self._table is not None and identity == self._identity:
            self._table.refresh()
            return
        self._table = self._factory.open(self._access(identity))
        self._identity = identity
        self._empty_up_to.clear()

    def _range(self, tp: TopicPartition, known: int | None, bounds: ReadableOffsets) -> OffsetRange:
        """Return the offsets to read of a partition."""
        position = max(known or 0, self._empty_up_to.get(tp.partition, 0))
        if known is not None and bounds.end < known:
            raise TableError(
                f"partition {tp} ends at offset {bounds.end}, but the table has its records "
                f"up to {known}: the topic has lost them, and offsets would repeat"
            )
        if known is not None and bounds.start > position:
            self.counts.lost_records_count += bounds.start - position
        return OffsetRange(tp, max(position, bounds.start), bounds.end)

    def _write(
        self,
        source: TopicSource,
        topic_ids: dict[TopicPartition, bytes],
        ranges: list[OffsetRange],
        known: dict[int, int],
    ) -> _Reached:
        """Write the rows of ranges to files, until a commit is large enough."""
        writer = _RowWriter(self._existing_or_new, self._store, self.settings)
        advances: dict[int, OffsetAdvance] = {}
        read_bytes = 0
        try:
            for offset_range in ranges:
                partition = offset_range.tp.partition
                for fetched in source.fetch(offset_range, topic_ids[offset_range.tp]):
                    self._write_rows(writer, fetched)
                    advances[partition] = OffsetAdvance(known.get(partition), fetched.next_offset)
                    read_bytes += fetched.size_bytes
                    if read_bytes >= _COMMIT_BYTES_MAX:
                        return _Reached(advances, writer.close(), is_complete=False)
            return _Reached(advances, writer.close(), is_complete=True)
        except BaseException:
            writer.discard()
            raise
        finally:
            self.counts.read_bytes += read_bytes

    def _write_rows(self, writer: "_RowWriter", fetched: FetchedRecords) -> None:
        for records in fetched.batches:
            for rows in self._rows.rows(records):
                written = writer.write(rows)
                self.counts.rejected_rows_count += len(written) - written.errors.null_count

    def _existing_or_new(self, schema: pa.Schema) -> StoredTable:
        """Return the table; it is created for its first rows."""
        if self._table is None:
            assert self._identity is not None, "the topic is known"
            self._table = self._factory.create(self._access(self._identity), schema)
        return self._table


class _RowWriter:
    """Writes rows to data files; the table gets their columns first."""

    def __init__(
        self, table: Callable[[pa.Schema], StoredTable], store: ObjectStore, settings: TableSettings
    ) -> None:
        self._table_for = table
        self._store = store
        self._settings = settings
        self._schema: pa.Schema | None = None
        self._writer: DataFileWriter | None = None
        self._files: list[DataFile] = []

    def write(self, rows: RecordRows) -> RecordRows:
        """Write rows; return them, without the columns that the table cannot take."""
        batch = rows.batch()
        table = self._table_for(merged_schema(pa.schema([]), batch.schema).schema)
        merged = merged_schema(table.schema, batch.schema)
        if merged.misfits:
            rows = rows.rejected(merged.misfits)
            batch = rows.batch()
            merged = merged_schema(table.schema, batch.schema)
        if merged.schema != self._schema:
            self._finish()
            table.extend(merged.schema)
            self._schema = table.schema
        if self._writer is None:
            self._writer = DataFileWriter(
                self._store, table.file_schema, lambda: table.new_path, self._settings.target_file_bytes
            )
        self._writer.write(aligned(batch, table.schema))
        return rows

    def close(self) -> list[DataFile]:
        self._finish()
        return self._files

    def discard(self) -> None:
        """Delete what was written."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None
        self._store.delete([file.path for file in self._files])

    def _finish(self) -> None:
        if self._writer is not None:
            self._files += self._writer.close()
            self._writer = None
