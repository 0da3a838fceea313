"""Puts the parts of a topic's table together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from barnabas.base.clock import Clock
from barnabas.objects.location import Location
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.registry.client import RegistryClient
from barnabas.tables.errors import TableError, describe_error
from barnabas.tables.range_writing import LocalRangesWriter, RangesWriter
from barnabas.tables.rows import KEY, VALUE, BytesDecoder, Decoder, RegistryDecoder, RowMaker, StringDecoder
from barnabas.tables.settings import Decoding, TableFormat, TableSettings, catalog_secrets
from barnabas.tables.table import StoredTable, TableAccess, TopicIdentity
from barnabas.tables.topic_table import TableFactory, TopicTable


@dataclass(frozen=True)
class TableStores:
    """Where tables are, beside their locations."""

    store_settings: StoreSettings = field(default_factory=StoreSettings)
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)  #: properties of Iceberg's catalog

    def describe(self, error: BaseException) -> str:
        """Return an error in one line, without the secrets of the store and the catalog."""
        text = self.store_settings.redacted(describe_error(error))
        for secret in catalog_secrets(self.catalog):
            text = text.replace(secret, "***")
        return text

    def access(self, settings: TableSettings, identity: TopicIdentity, clock: Clock) -> TableAccess:
        location = settings.location
        return TableAccess(location, identity, self.settings_for(location), self.catalog, new_name, clock)

    def settings_for(self, location: Location) -> StoreSettings:
        """Return the settings of a table's store; directories, which other tables may have, take none."""
        return StoreSettings() if isinstance(location, Path) else self.store_settings


def table_factory(settings: TableSettings) -> TableFactory:
    """Return what opens and creates tables of the format.

    :raises TableError: If its library is not installed.
    """
    if settings.format is TableFormat.DELTA:
        from barnabas.tables.delta import create_delta, open_delta  # heavy, as the next

        def create(access: TableAccess, schema: pa.Schema) -> StoredTable:
            return create_delta(access, schema, settings.history_ms)

        return TableFactory(open_delta, create)
    try:
        from barnabas.tables.iceberg import create_iceberg, open_iceberg
    except ModuleNotFoundError as error:
        raise TableError(
            f"Iceberg tables need the package {error.name}: pip install '.[iceberg]' in a checkout of Barnabas"
        ) from None
    return TableFactory(open_iceberg, create_iceberg)


def build_topic_table(
    settings: TableSettings, stores: TableStores, writer: RangesWriter, clock: Clock
) -> TopicTable:
    """Return the table of a topic; it is opened when it advances.

    :raises TableError: If the library of its format is not installed.
    """
    return TopicTable(
        settings,
        lambda identity: stores.access(settings, identity, clock),
        table_factory(settings),
        writer,
        clock,
    )


def local_writer(
    settings: TableSettings, stores: TableStores, registry: RegistryClient | None
) -> LocalRangesWriter:
    """Return the writer of a topic's rows in this process.

    :param registry: Needed only if the settings say so.
    :raises TableError: If the settings need a registry that was not given.
    """
    if settings.needs_registry and registry is None:
        raise TableError(
            f"topic {settings.topic} decodes with the schema registry; start the service with --registry URL"
        )
    rows = RowMaker(
        settings,
        _decoder(settings.key_decoding, KEY, registry),
        _decoder(settings.value_decoding, VALUE, registry),
    )
    return LocalRangesWriter(
        rows, open_store(settings.location, stores.settings_for(settings.location)), new_name
    )


def new_name() -> str:
    """Return a name that no file has."""
    return str(uuid4())


def _decoder(decoding: Decoding, column: str, registry: RegistryClient | None) -> Decoder:
    match decoding:
        case Decoding.BYTES:
            return BytesDecoder(column)
        case Decoding.STRING:
            return StringDecoder(column)
        case Decoding.REGISTRY:
            assert registry is not None, "it was checked"
            return RegistryDecoder(registry, KEY if column == KEY else None)
