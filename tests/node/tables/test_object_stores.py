"""Tables in an object store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.objects.location import parse_location
from barnabas.tables.building import TableStores
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.settings import TableFormat
from barnabas.testing import EmbeddedBroker
from support.object_server import ObjectServer, object_server
from support.tables import FORMAT_IDS, FORMATS, advance, settings_of, table_rows, topic_table


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with object_server() as running:
        yield running


@pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
def test_a_table_is_kept_in_a_bucket(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, server: ObjectServer, kind: TableFormat
) -> None:
    url = server.create_bucket(f"bucket-{kind.value}")
    stores = TableStores(server.settings, {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"})
    settings = settings_of(topic, kind, parse_location(f"{url}/lake/orders"))
    table = topic_table(settings, stores)
    for number in range(9):
        broker.produce(topic, f"{number}", partition=0)
        advance(table, broker.bootstrap)
        table.maintain()
    assert table.counts.joined_files_count == 8
    other = topic_table(settings, stores)
    broker.produce(topic, "9", partition=0)
    advance(other, broker.bootstrap)
    assert [row["value"] for row in table_rows(settings, stores)] == [b"%d" % number for number in range(10)]


def test_a_service_with_store_options_also_keeps_tables_in_directories(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, server: ObjectServer
) -> None:
    stores = TableStores(server.settings)
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "orders")
    broker.produce(topic, "0", partition=0)
    table = topic_table(settings, stores)
    advance(table, broker.bootstrap)
    table.maintain()
    assert [row["value"] for row in table_rows(settings)] == [b"0"]


def test_two_writers_of_a_bucket_exclude_each_other(
    broker: EmbeddedBroker, topic: str, server: ObjectServer
) -> None:
    url = server.create_bucket("two-writers")
    stores = TableStores(server.settings)
    settings = settings_of(topic, TableFormat.DELTA, parse_location(f"{url}/orders"))
    broker.produce(topic, "0", partition=0)
    first, second = topic_table(settings, stores), topic_table(settings, stores)
    advance(first, broker.bootstrap)
    advance(second, broker.bootstrap)
    stale = second._table
    assert stale is not None
    broker.produce(topic, "1", partition=0)
    advance(first, broker.bootstrap)
    from barnabas.tables.table import OffsetAdvance

    with pytest.raises(ConcurrentCommit):
        stale.append([], {0: OffsetAdvance(1, 2)})
    assert [row["value"] for row in table_rows(settings, stores)] == [b"0", b"1"]


def test_iceberg_in_a_bucket_needs_a_catalog(
    broker: EmbeddedBroker, topic: str, server: ObjectServer
) -> None:
    url = server.create_bucket("no-catalog")
    settings = settings_of(topic, TableFormat.ICEBERG, parse_location(f"{url}/orders"))
    broker.produce(topic, "0", partition=0)
    with pytest.raises(TableError, match="needs a catalog, such as --catalog uri="):
        advance(topic_table(settings, TableStores(server.settings)), broker.bootstrap)
