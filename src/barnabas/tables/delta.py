"""Delta tables, by delta-rs.

The offsets are application transactions, one for each partition, in the commit of their records: Delta refuses a
commit if another one has set one of its transactions since the table was read.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from barnabas.objects.opening import open_store
from barnabas.tables.data_files import DataFile, is_data_path
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.evolution import storable
from barnabas.tables.table import (
    TOPIC_ID_PROPERTY,
    TOPIC_PROPERTY,
    OffsetAdvance,
    TableAccess,
    TableFile,
    TableSummary,
    check_advances,
)

_MS_PER_HOUR = 3_600_000
#: Files of commits that are being made must not be deleted; no commit takes as long.
_KEPT_HOURS_MIN = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The last one that Python can represent, rounded down.
_LAST_MILLISECOND = datetime.max.replace(microsecond=999_000, tzinfo=UTC)


class DeltaTopicTable:
    """The `StoredTable` of a topic in Delta's format."""

    def __init__(self, table: DeltaTable, access: TableAccess) -> None:
        self._table = table
        self._identity = access.identity
        self._location = access.location
        self._store_settings = access.store_settings
        self._clock = access.clock
        self._schema = _arrow_schema(table)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def file_schema(self) -> pa.Schema:
        return self._schema

    @property
    def data_directory(self) -> str:
        return ""

    def refresh(self) -> None:
        self._table.update_incremental()
        self._schema = _arrow_schema(self._table)

    def next_offsets(self, partitions: Sequence[int]) -> dict[int, int]:
        versions = {
            partition: self._table.transaction_version(self._app_id(partition)) for partition in partitions
        }
        return {partition: version for partition, version in versions.items() if version is not None}

    def extend(self, schema: pa.Schema) -> None:
        known = {field.name: field.type for field in self._schema}
        new = [field for field in schema if known.get(field.name) != field.type]
        if not new:
            return
        with self._conflicts():
            self._table.alter.add_columns(Schema.from_arrow(pa.schema(new)).fields)
        self.refresh()

    def append(self, files: Sequence[DataFile], advances: Mapping[int, OffsetAdvance]) -> None:
        check_advances(self.next_offsets(list(advances)), advances)
        transactions = [
            Transaction(self._app_id(partition), after) for partition, (_, after) in sorted(advances.items())
        ]
        self._commit(self._added(files, changes_rows=True), CommitProperties(app_transactions=transactions))

    def files(self) -> list[TableFile]:
        rows = pa.table(self._table.get_add_actions(flatten=True))
        names = ("path", "size_bytes", "num_records", "min.kafka_timestamp", "max.kafka_timestamp")
        columns = [
            rows.column(name).to_pylist() if name in rows.column_names else [None] * len(rows)
            for name in names
        ]
        files = [
            TableFile(unquote(path), size_bytes, rows_count, _epoch_ms(lowest), _epoch_ms(highest))
            for path, size_bytes, rows_count, lowest, highest in zip(*columns, strict=True)
        ]
        partly_deleted = self._partly_deleted_names()
        return [file for file in files if file.path.rpartition("/")[2] not in partly_deleted]

    def _partly_deleted_names(self) -> set[str]:
        """Return the names of files in which other writers have marked deleted rows."""
        if "deletionVectors" not in (self._table.protocol().writer_features or ()):
            return set()
        paths = pa.table(self._table.deletion_vectors()).column("filepath").to_pylist()
        return {unquote(path).rpartition("/")[2] for path in paths}

    def replace(self, removed: Sequence[TableFile], added: Sequence[DataFile], *, changes_rows: bool) -> None:
        now_ms = self._clock.wall_ms()
        actions = self._added(added, changes_rows=changes_rows)
        actions += [RemoveAction(file.path, changes_rows, now_ms, file.size_bytes) for file in removed]
        # delta-rs would not notice that another writer has replaced the same files, so no commit may come between
        self._commit(actions, CommitProperties(max_commit_retries=0))

    def _added(self, files: Sequence[DataFile], *, changes_rows: bool) -> list[AddAction | RemoveAction]:
        now_ms = self._clock.wall_ms()
        return [
            AddAction(file.path, file.size_bytes, {}, now_ms, changes_rows, _statistics(file))
            for file in files
        ]

    def _commit(self, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> None:
        schema = self._table.schema()
        with self._conflicts():
            self._table.create_write_transaction(actions, "append", schema, [], commit_properties=properties)
        self.refresh()

    def clean(self, history_ms: int) -> int:
        hours = _kept_hours(history_ms)
        self._set_history(hours)
        unused = self._table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
        # files of others may be at the location, even whole tables below it
        deleted = [path for path in unused if is_data_path(path, self.data_directory)]
        open_store(self._location, self._store_settings).delete(deleted)
        return len(deleted)

    def _set_history(self, hours: int) -> None:
        """Keep the log as long as the files; delta-rs deletes older parts of it when it writes a checkpoint."""
        properties = _history(hours)
        configured = self._table.metadata().configuration
        if any(configured.get(name) != value for name, value in properties.items()):
            with self._conflicts():
                self._table.alter.set_table_properties(properties)

    def summary(self) -> TableSummary:
        [last] = self._table.history(1)
        return TableSummary(str(self._table.version()), last.get("timestamp"))

    @contextmanager
    def _conflicts(self) -> Iterator[None]:
        """Tell conflicts from other reasons why a commit fails, for which delta-rs has the same error.

        :raises ConcurrentCommit: There is a newer version.
        :raises TableError: There is no newer version.
        """
        version = self._table.version()
        try:
            yield
        except CommitFailedError as error:
            self.refresh()
            if self._table.version() == version:
                raise TableError(f"the table at {self._location} cannot be changed: {error}") from error
            raise ConcurrentCommit(str(error)) from error

    def _app_id(self, partition: int) -> str:
        return f"barnabas-{self._identity.id_text}-{partition}"


def open_delta(access: TableAccess) -> DeltaTopicTable | None:
    """Return the table of a topic; None if it does not exist.

    :raises TableError: If there is a table that is not the topic's.
    """
    try:
        table = DeltaTable(str(access.location), storage_options=access.store_settings.delta_options())
    except TableNotFoundError:
        return None
    _check_topic(table, access)
    return DeltaTopicTable(table, access)


def create_delta(access: TableAccess, schema: pa.Schema, history_ms: int) -> DeltaTopicTable:
    """Create the table of a topic.

    :raises TableError: If the columns cannot be those of a Delta table.
    :raises ConcurrentCommit: If another writer has created it.
    """
    topic = access.identity.name
    configuration: dict[str, str | None] = {
        TOPIC_PROPERTY: topic,
        TOPIC_ID_PROPERTY: access.identity.id_text,
        **_history(_kept_hours(history_ms)),
    }
    try:
        table = DeltaTable.create(
            str(access.location),
            Schema.from_arrow(schema),
            mode="ignore",
            name=topic,
            description=f"The records of the topic {topic}, kept by barnabas tables.",
            configuration=configuration,
            storage_options=access.store_settings.delta_options(),
            raise_if_key_not_exists=False,  # because these are not Delta's
        )
    except CommitFailedError as error:
        raise ConcurrentCommit(str(error)) from error
    except (ValueError, pa.ArrowException) as error:
        raise TableError(f"the columns {schema.names} cannot be those of a Delta table: {error}") from None
    _check_topic(table, access)
    return DeltaTopicTable(table, access)


def _check_topic(table: DeltaTable, access: TableAccess) -> None:
    location, identity = access.location, access.identity
    configuration = table.metadata().configuration
    found = configuration.get(TOPIC_ID_PROPERTY)
    if found == identity.id_text:
        return
    advice = "move it away, or choose another barnabas.table.location"
    if found is None:
        raise TableError(f"{location} has a Delta table that barnabas tables did not create; {advice}")
    name = configuration.get(TOPIC_PROPERTY)
    if name == identity.name:
        raise TableError(
            f"{location} has the table of an earlier topic {name} with the id {found}; the topic was deleted and "
            f"created again with the id {identity.id_text}; {advice}"
        )
    raise TableError(f"{location} has the table of the topic {name}, not of {identity.name}; {advice}")


def _kept_hours(history_ms: int) -> int:
    return max(_KEPT_HOURS_MIN, math.ceil(history_ms / _MS_PER_HOUR))


def _history(hours: int) -> dict[str, str]:
    interval = f"interval {hours} hours"
    return {"delta.logRetentionDuration": interval, "delta.deletedFileRetentionDuration": interval}


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    return pa.schema(
        [pa.field(field.name, storable(field.type)) for field in pa.schema(table.schema().to_arrow())]
    )


def _statistics(file: DataFile) -> str:
    """Return the statistics of a file as JSON, with which readers skip files."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls = {name: column.nulls_count for name, column in file.statistics.items()}
    for name, column in file.statistics.items():
        low, high = _bound(column.lowest, is_upper=False), _bound(column.highest, is_upper=True)
        if low is not None and high is not None:
            lowest[name], highest[name] = low, high
    return json.dumps(
        {"numRecords": file.rows_count, "minValues": lowest, "maxValues": highest, "nullCount": nulls}
    )


def _bound(value: object, *, is_upper: bool) -> int | float | str | None:
    """Return a bound as Delta writes it; times have milliseconds, rounded outwards."""
    match value:
        case bool():
            return None
        case int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            rounded = value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=UTC)
            if is_upper and value.microsecond % 1000:
                if rounded == _LAST_MILLISECOND:  # a usual value for "without an end"
                    return None
                rounded += timedelta(milliseconds=1)
            return rounded.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return None


def _epoch_ms(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // timedelta(milliseconds=1)
