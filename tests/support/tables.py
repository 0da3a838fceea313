"""Tables of topics for tests, and their rows as the libraries of their formats read them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from barnabas.base.clock import Clock, SystemClock
from barnabas.objects.location import Location
from barnabas.reading.connection import ConnectionOptions
from barnabas.registry.client import RegistryClient
from barnabas.tables.building import TableStores, build_topic_table, local_writer
from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.tables.source import TopicSource
from barnabas.tables.table import TopicIdentity
from barnabas.tables.topic_table import TopicTable
from support.source_rows import SourceRow

FORMATS = (TableFormat.DELTA, TableFormat.ICEBERG)
FORMAT_IDS = [each.value for each in FORMATS]


def settings_of(topic: str, kind: TableFormat, location: Location, **further: Any) -> TableSettings:
    return TableSettings(topic, kind, location, **further)


def topic_table(
    settings: TableSettings,
    stores: TableStores | None = None,
    registry_url: str | None = None,
    clock: Clock | None = None,
) -> TopicTable:
    registry = None if registry_url is None else RegistryClient(registry_url)
    stores = stores or TableStores()
    writer = local_writer(settings, stores, registry)
    return build_topic_table(settings, stores, writer, clock or SystemClock())


@contextmanager
def topic_source(bootstrap: str, **options: Any) -> Iterator[TopicSource]:
    with closing(TopicSource(ConnectionOptions(bootstrap, retry_timeout_ms=10_000), **options)) as source:
        yield source


def advance(table: TopicTable, bootstrap: str) -> None:
    """Bring a table up to date."""
    with topic_source(bootstrap) as source:
        while not table.advance(source):
            pass


def arrow_table(settings: TableSettings, stores: TableStores | None = None) -> pa.Table:
    """Return all rows of a table, as delta-rs or PyIceberg reads it."""
    stores = stores or TableStores()
    if settings.format is TableFormat.DELTA:
        options = stores.store_settings.delta_options()
        return DeltaTable(str(settings.location), storage_options=options).to_pyarrow_table()
    return iceberg_table(settings, stores).scan().to_arrow()


def iceberg_table(settings: TableSettings, stores: TableStores | None = None) -> Any:
    from barnabas.tables.iceberg import _catalog, _identifier

    access = (stores or TableStores()).access(
        settings, TopicIdentity(settings.topic, bytes(16)), SystemClock()
    )
    return _catalog(access).load_table(_identifier(access))


def table_rows(settings: TableSettings, stores: TableStores | None = None) -> list[dict[str, Any]]:
    """Return all rows by partition and offset."""
    return by_offset(arrow_table(settings, stores).to_pylist())


def by_offset(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["kafka_partition"], row["kafka_offset"]))


def expected_row(row: SourceRow) -> dict[str, Any]:
    """Return a consumed record as a row of a table that keeps bytes; times in ms."""
    headers = None if row.headers is None else [{"key": key, "value": value} for key, value in row.headers]
    return {
        "value": row.value,
        "kafka_key": row.key,
        "kafka_partition": row.partition,
        "kafka_offset": row.offset,
        "kafka_timestamp": row.timestamp,
        "kafka_headers": headers,
    }


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a table that keeps bytes with its time in ms; PyIceberg reads null lists as empty ones."""
    timestamp_ms = pa.scalar(row["kafka_timestamp"], pa.timestamp("ms", "UTC")).value
    return {**row, "kafka_timestamp": timestamp_ms, "kafka_headers": row["kafka_headers"] or None}
