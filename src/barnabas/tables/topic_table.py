"""Keeps the table of one topic: reads new records, writes their rows to files, and commits them with the offsets.

The offsets are in the table, so a service that was killed continues where the last commit ended, and files that it did
not commit belong to no table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.objects.opening import open_store
from barnabas.reading.offset_range import OffsetRange
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.evolution import merged_schema
from barnabas.tables.maintenance import TableMaintenance
from barnabas.tables.range_writing import RangesWriter, TopicRange, WriteContext, WrittenRanges
from barnabas.tables.settings import TableSettings
from barnabas.tables.source import ReadableOffsets, TopicSource
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
    conflicts_count: int = 0  #: passes that another service's commit made superfluous
    joined_files_count: int = 0
    deleted_rows_count: int = 0
    deleted_files_count: int = 0


class TopicTable:
    """The table of a topic, as its settings say. For one thread at a time."""

    def __init__(
        self,
        settings: TableSettings,
        access: Callable[[TopicIdentity], TableAccess],
        factory: TableFactory,
        writer: RangesWriter,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.counts = TableStatistics()
        self._access = access
        self._factory = factory
        self._writer = writer
        self._clock = clock
        self._table: StoredTable | None = None
        self._identity: TopicIdentity | None = None
        #: Offsets up to which there was nothing but transaction markers and aborted records.
        self._empty_up_to: dict[int, int] = {}
        #: The partition at which the last pass ended, -1 if it read all.
        self._last_partition = -1
        self._commits_since_join = 0
        self._expired_ms: int | None = None

    def advance(self, source: TopicSource) -> bool:
        """Commit new records; return whether the table has all records that there were at the beginning.

        :raises TableError: If the table cannot be kept.
        :raises ConcurrentCommit: If another writer was first; nothing was committed.
        """
        try:
            return self._advance(source)
        except ConcurrentCommit:
            raise
        except BaseException:
            self._table = None  # it may have been removed or replaced, so the next pass opens it anew
            raise

    def _advance(self, source: TopicSource) -> bool:
        partitions = source.partitions(self.settings.topic)
        identity = TopicIdentity(self.settings.topic, next(iter(partitions.values())))
        self._open(identity)
        known = {} if self._table is None else self._table.next_offsets([tp.partition for tp in partitions])
        bounds = source.bounds(partitions)
        ranges = [
            TopicRange(self._range(tp, known.get(tp.partition), bounds[tp]), partitions[tp])
            for tp in sorted(partitions)
        ]
        todo = self._in_turn([each for each in ranges if each.range.offsets_count > 0])
        if not todo:
            return True
        written = self._writer.write(self._context(), source, todo)
        self.counts.read_bytes += written.read_bytes
        self._last_partition = -1 if written.is_complete else next(reversed(written.next_offsets), -1)
        self._commit(written, known)
        if written.missing is not None:
            self._add_columns(written.missing, identity)
        return written.is_complete

    def _in_turn(self, ranges: list[TopicRange]) -> list[TopicRange]:
        """Begin behind the partition at which the last pass ended, so that a large one does not delay the others."""
        return sorted(ranges, key=lambda each: each.range.tp.partition <= self._last_partition)

    def _context(self) -> WriteContext:
        schema = pa.schema([]) if self._table is None else self._table.schema
        file_schema = schema if self._table is None else self._table.file_schema
        directory = "" if self._table is None else self._table.data_directory
        return WriteContext(self.settings, schema, file_schema, directory, _COMMIT_BYTES_MAX)

    def _commit(self, written: WrittenRanges, known: Mapping[int, int]) -> None:
        if not written.files:
            self._empty_up_to |= written.next_offsets
            return
        assert self._table is not None, "files belong to a table"
        advances = {
            partition: OffsetAdvance(known.get(partition), offset)
            for partition, offset in written.next_offsets.items()
        }
        # if it fails, the files stay until they are cleaned up: the commit may have succeeded nevertheless
        self._table.append(written.files, advances)
        self.counts.commits_count += 1
        self.counts.rows_count += sum(file.rows_count for file in written.files)
        self.counts.rejected_rows_count += written.rejected_rows_count
        self._commits_since_join += 1

    def _add_columns(self, schema: pa.Schema, identity: TopicIdentity) -> None:
        """Add columns to the table; it is created when its first ones are known."""
        if self._table is None:
            self._table = self._factory.create(self._access(identity), schema)
        else:
            self._table.extend(schema)
        if merged_schema(self._table.schema, schema).schema != self._table.schema:
            raise TableError(
                f"the table at {self.settings.location} does not accept the columns {schema.names}"
            )

    def maintain(self) -> None:
        """Join files and delete what is too old, if it is time for that.

        :raises ConcurrentCommit: If another writer was first; a later call does the rest.
        """
        if self._table is None or self._identity is None:
            return
        access = self._access(self._identity)
        store = open_store(access.location, access.store_settings)
        maintenance = TableMaintenance(self._table, store, self.settings, access.new_name)
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
        empty_up_to = self._empty_up_to.get(tp.partition, 0)
        if empty_up_to > bounds.end:  # the log was truncated, and may have other records there soon
            del self._empty_up_to[tp.partition]
            empty_up_to = 0
        position = max(known or 0, empty_up_to)
        if known is not None and bounds.end < known:
            raise TableError(
                f"partition {tp} ends at offset {bounds.end}, but the table has its records "
                f"up to {known}: the topic has lost them, and offsets would repeat"
            )
        if known is not None and bounds.start > position:
            self.counts.lost_records_count += bounds.start - position
            self._empty_up_to[tp.partition] = bounds.start  # they are counted once
        return OffsetRange(tp, max(position, bounds.start), bounds.end)
