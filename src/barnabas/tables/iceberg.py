"""Iceberg tables, by PyIceberg.

The offsets are a property of the table that the commit of their records sets. Every commit is made on the last snapshot
that was read, or fails: PyIceberg would otherwise repeat an append on a snapshot that has the same records.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.snapshot import UpdateSnapshot
from pyiceberg.types import TimestamptzType

from barnabas.objects.location import Location
from barnabas.objects.opening import open_store
from barnabas.objects.store import ObjectNotFound, ObjectStore
from barnabas.tables.data_files import DataFile
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

#: The table property with the next offset of each partition, as JSON.
OFFSETS_PROPERTY = "barnabas.offsets"
#: The name of catalogs that are configured here; Spark must use it, too, to find tables of SQL catalogs.
CATALOG_NAME = "barnabas"
NAMESPACE_DEFAULT = "topics"
#: The file of the catalog beside the tables, if none is configured.
CATALOG_FILE = "iceberg-catalog.db"

#: Files of commits that are being made must not be deleted; no commit takes as long.
_KEPT_MS_MIN = 3_600_000
_TIMESTAMP = "kafka_timestamp"
#: Settings of obstore and delta-rs that PyIceberg has under other names.
_FILE_IO_PROPERTIES = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
    "aws_endpoint_url": "s3.endpoint",
    "aws_endpoint": "s3.endpoint",
}


class IcebergTopicTable:
    """The `StoredTable` of a topic in Iceberg's format."""

    def __init__(self, table: IcebergTable, access: TableAccess) -> None:
        self._table = table
        self._access = access
        self._schema = _arrow_schema(table)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def file_schema(self) -> pa.Schema:
        return schema_to_pyarrow(self._table.schema())

    @property
    def data_directory(self) -> str:
        return "data/"

    def refresh(self) -> None:
        self._table.refresh()
        self._schema = _arrow_schema(self._table)

    def next_offsets(self, partitions: Sequence[int]) -> dict[int, int]:
        offsets = json.loads(self._table.properties.get(OFFSETS_PROPERTY, "{}"))
        return {partition: offsets[str(partition)] for partition in partitions if str(partition) in offsets}

    def extend(self, schema: pa.Schema) -> None:
        if schema == self._schema:
            return
        with _conflicts(), self._table.update_schema() as update:
            update.union_by_name(schema)
        self.refresh()

    def append(self, files: Sequence[DataFile], advances: Mapping[int, OffsetAdvance]) -> None:
        offsets = json.loads(self._table.properties.get(OFFSETS_PROPERTY, "{}"))
        check_advances({int(partition): offset for partition, offset in offsets.items()}, advances)
        offsets |= {str(partition): after for partition, (_, after) in advances.items()}
        self._refuse_repetition()
        with _conflicts(), self._table.transaction() as transaction:
            transaction.set_properties({OFFSETS_PROPERTY: json.dumps(offsets)})
            with UpdateSnapshot(transaction, self._table.io).merge_append() as snapshot:
                for file in files:
                    snapshot.append_data_file(self._data_file(file))
        self.refresh()

    def files(self) -> list[TableFile]:
        return [
            TableFile(
                self._relative(file.file_path),
                file.file_size_in_bytes,
                file.record_count,
                *self._timestamps(file),
            )
            for file in self._data_files()
        ]

    def replace(self, removed: Sequence[TableFile], added: Sequence[DataFile], *, changes_rows: bool) -> None:
        """See `StoredTable`; for PyIceberg, all replacements change rows."""
        paths = {file.path for file in removed}
        old = [file for file in self._data_files() if self._relative(file.file_path) in paths]
        self._refuse_repetition()
        with (
            _conflicts(),
            self._table.transaction() as transaction,
            UpdateSnapshot(transaction, self._table.io).overwrite() as snapshot,
        ):
            for data_file in old:
                snapshot.delete_data_file(data_file)
            for file in added:
                snapshot.append_data_file(self._data_file(file))
        self.refresh()

    def clean(self, history_ms: int) -> int:
        oldest_ms = self._access.clock.wall_ms() - max(history_ms, _KEPT_MS_MIN)
        expired = self._replaced_before(oldest_ms)
        if expired:
            with _conflicts():
                self._table.maintenance.expire_snapshots().by_ids(expired).commit()
            self.refresh()
        store = open_store(self._access.location, self._access.store_settings)
        used = self._used_paths()
        # only in the table's directories: files of others may be at the location, even whole tables below it
        found = [each.key for part in ("data", "metadata") for each in store.list(part)]
        deleted = [key for key in found if key not in used and _is_older(store, key, oldest_ms)]
        store.delete(deleted)
        return len(deleted)

    def summary(self) -> TableSummary:
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return TableSummary("", None)
        return TableSummary(str(snapshot.snapshot_id), snapshot.timestamp_ms)

    def _replaced_before(self, time_ms: int) -> list[int]:
        """Return the snapshots that have not been current since a time, without those of branches and tags."""
        metadata = self._table.metadata
        kept = {ref.snapshot_id for ref in metadata.refs.values()}
        replaced_ms = {old.snapshot_id: new.timestamp_ms for old, new in pairwise(metadata.snapshot_log)}
        return [
            snapshot.snapshot_id
            for snapshot in metadata.snapshots
            if snapshot.snapshot_id not in kept
            and replaced_ms.get(snapshot.snapshot_id, snapshot.timestamp_ms) < time_ms
        ]

    def _data_files(self) -> list[IcebergFile]:
        """Return the data files without deleted rows, which other writers may have marked."""
        return [task.file for task in self._table.scan().plan_files() if not task.delete_files]

    def _data_file(self, file: DataFile) -> IcebergFile:
        path = f"{self._table.location()}/{file.path}"
        modes = {
            f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{field.name}": "counts"
            for field in self._schema
            if pa.types.is_temporal(field.type) and _lacks_bounds(file, field.name)
        }  # PyIceberg fails at times that Python cannot represent
        metadata = _with_properties(self._table.metadata, modes)
        return parquet_file_to_data_file(self._table.io, metadata, path)

    def _timestamps(self, file: IcebergFile) -> tuple[int | None, int | None]:
        """Return the bounds of the timestamps, in ms."""
        field_id = self._table.schema().find_field(_TIMESTAMP).field_id
        bounds = ((file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id))
        lowest, highest = (None if bound is None else _time_ms(bound) for bound in bounds)
        return lowest, highest

    def _relative(self, path: str) -> str:
        return _path_below(path, self._table.location())

    def _used_paths(self) -> set[str]:
        """Return the paths of all files that a version of the table needs."""
        io, used = self._table.io, {self._table.metadata_location}
        metadata = self._table.metadata
        used |= {entry.metadata_file for entry in metadata.metadata_log}
        used |= {each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics)}
        for snapshot in self._table.snapshots():
            used.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(io):
                if manifest.manifest_path in used:
                    continue
                used.add(manifest.manifest_path)
                used |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io)}
        return {self._relative(path) for path in used}

    def _refuse_repetition(self) -> None:
        """Let commits fail if there is a newer snapshot, for this object alone: the table keeps its properties."""
        self._table.metadata = _with_properties(
            self._table.metadata, {TableProperties.COMMIT_NUM_RETRIES: "0"}
        )


def open_iceberg(access: TableAccess) -> IcebergTopicTable | None:
    """Return the table of a topic; None if the catalog does not have it.

    :raises TableError: If there is a table that is not the topic's.
    """
    try:
        table = _catalog(access).load_table(_identifier(access))
    except NoSuchTableError:
        return None
    _check_topic(table, access)
    return IcebergTopicTable(table, access)


def create_iceberg(access: TableAccess, schema: pa.Schema) -> IcebergTopicTable:
    """Create the table of a topic.

    :raises TableError: If the columns cannot be those of an Iceberg table, or the location has another one.
    :raises ConcurrentCommit: If another writer has created it.
    """
    catalog, identifier = _catalog(access), _identifier(access)
    _check_files(access)
    catalog.create_namespace_if_not_exists(identifier[:-1])
    properties = {
        TOPIC_PROPERTY: access.identity.name,
        TOPIC_ID_PROPERTY: access.identity.id_text,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
        TableProperties.MANIFEST_MERGE_ENABLED: "true",
    }
    try:
        table = catalog.create_table(
            identifier, schema, location=_url(access.location), properties=properties
        )
    except TableAlreadyExistsError as error:
        if open_iceberg(access) is None:  # Glue and Hive have tables of other formats, too
            message = (
                f"the catalog has a table {'.'.join(identifier)} that is not an Iceberg table; rename it"
            )
            raise TableError(message) from error
        raise ConcurrentCommit(str(error)) from error
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise TableError(f"the columns {schema.names} cannot be those of an Iceberg table: {error}") from None
    return IcebergTopicTable(table, access)


def _catalog(access: TableAccess) -> Catalog:
    properties = {name: value for name, value in access.catalog.items() if name != "namespace"}
    for option, value in access.store_settings.values.items():
        name = _FILE_IO_PROPERTIES.get(option.lower())
        if name is not None:
            properties.setdefault(name, value)
    if "name" in properties:
        return load_catalog(properties.pop("name"), **properties)
    if "uri" in properties or "type" in properties:
        return load_catalog(CATALOG_NAME, **properties)
    location = access.location
    if not isinstance(location, Path):
        raise TableError(
            f"an Iceberg table at {location} needs a catalog, such as --catalog uri=https://HOST/api/catalog"
        )
    location.parent.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{location.parent / CATALOG_FILE}"
    return load_catalog(CATALOG_NAME, type="sql", uri=uri, **properties)


def _identifier(access: TableAccess) -> tuple[str, ...]:
    return (*access.catalog.get("namespace", NAMESPACE_DEFAULT).split("."), access.identity.name)


def _check_topic(table: IcebergTable, access: TableAccess) -> None:
    name, identity = ".".join(table.name()), access.identity
    found = table.properties.get(TOPIC_ID_PROPERTY)
    if found is None:
        raise TableError(f"the catalog has a table {name} that barnabas tables did not create; rename it")
    if found != identity.id_text:
        raise TableError(
            f"the catalog has the table {name} of an earlier topic {table.properties.get(TOPIC_PROPERTY)} with the id "
            f"{found}; the topic was deleted and created again with the id {identity.id_text}; rename or drop the table"
        )
    if table.location().rstrip("/") != _url(access.location):
        raise TableError(
            f"the table {name} is at {table.location()}, and barnabas.table.location is {access.location}: change "
            "the config, or rename or drop the table"
        )


def _check_files(access: TableAccess) -> None:
    """Check that a new table does not share its files with another one, such as an earlier table that was renamed.

    :raises TableError: If it would.
    """
    store = open_store(access.location, access.store_settings)
    for found in store.list("metadata"):
        if not found.key.endswith(".metadata.json"):
            continue
        try:
            topic_id = json.loads(store.read(found.key)).get("properties", {}).get(TOPIC_ID_PROPERTY)
        except ValueError:  # it is compressed, and the service compresses none
            topic_id = None
        if topic_id != access.identity.id_text:  # an equal one is of a creation that was interrupted
            raise TableError(
                f"{access.location} has files of another Iceberg table, such as {found.key}; move or delete them if "
                "no catalog has that table, or choose another barnabas.table.location"
            )


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise ConcurrentCommit(str(error)) from error


def _with_properties(metadata: TableMetadata, properties: Mapping[str, str]) -> TableMetadata:
    """Return metadata with further properties, which no commit stores."""
    return metadata.model_copy(update={"properties": {**metadata.properties, **properties}})


def _lacks_bounds(file: DataFile, column: str) -> bool:
    statistics = file.statistics.get(column)
    return statistics is None or statistics.lowest is None


def _arrow_schema(table: IcebergTable) -> pa.Schema:
    fields = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return pa.schema([pa.field(field.name, storable(field.type)) for field in fields])


def _url(location: Location) -> str:
    # not as_uri(): PyIceberg takes the path of a URL literally
    return f"file://{location}" if isinstance(location, Path) else str(location)


def _path_below(path: str, location: str) -> str:
    """Return the path of a file below a location; both may be paths or URLs."""
    base = location.rstrip("/") + "/"
    if path.startswith(base):
        return path.removeprefix(base)
    file, base = (unquote(urlsplit(name).path) if "://" in name else name for name in (path, base))
    return file.removeprefix(base)


def _is_older(store: ObjectStore, key: str, time_ms: int) -> bool:
    try:
        return store.modified_ms(key) < time_ms
    except ObjectNotFound:  # another service has deleted it
        return False


def _time_ms(bound: bytes) -> int:
    time_us = int(from_bytes(TimestamptzType(), bound))
    return time_us // 1000
