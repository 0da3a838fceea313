"""Tables in catalogs that have other tables, too."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

from barnabas.base.clock import SystemClock
from barnabas.objects.settings import StoreSettings
from barnabas.tables import iceberg
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.table import TOPIC_ID_PROPERTY, TableAccess, TopicIdentity


class TakenCatalog:
    """A catalog that has a table of the topic's name; None for one that is not of Iceberg, as in Glue and Hive."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def create_namespace_if_not_exists(self, _: Any) -> None:
        pass

    def create_table(self, *_: Any, **__: Any) -> None:
        raise TableAlreadyExistsError("Table topics.orders already exists")

    def load_table(self, _: Any) -> Any:
        if self._table is None:
            raise NoSuchTableError("topics.orders is not an Iceberg table")
        return self._table


def create(table: Any, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = TopicIdentity("orders", bytes(16))
    access = TableAccess(directory, identity, StoreSettings(), {}, lambda: "name", SystemClock())
    monkeypatch.setattr(iceberg, "_catalog", lambda _: TakenCatalog(table))
    iceberg.create_iceberg(access, pa.schema([("value", pa.binary())]))


def test_a_table_of_another_format_has_the_topics_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TableError, match=r"a table topics\.orders that is not an Iceberg table; rename it"):
        create(None, tmp_path, monkeypatch)


def test_a_table_that_another_service_has_created_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {TOPIC_ID_PROPERTY: TopicIdentity("orders", bytes(16)).id_text}
    table = SimpleNamespace(
        name=lambda: ("topics", "orders"), properties=properties, location=lambda: f"file://{tmp_path}"
    )
    monkeypatch.setattr(iceberg, "IcebergTopicTable", lambda *_: object())
    with pytest.raises(ConcurrentCommit, match="already exists"):
        create(table, tmp_path, monkeypatch)
