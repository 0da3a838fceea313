"""Pipelines to and from tables of databases with different SQL: each row once."""

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from interop import databases
from support.databases import QUERY, Filed, Opened, Served, write_dying_everywhere
from support.pipelines import Scene

VARIABLE = "SHOP_PASSWORD"
LOGIN = f"user: {databases.USER}, password: {{env: {VARIABLE}}}"
FLOWS = """
  to_table:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING, price DECIMAL(9, 2)', batch_rows_max: 20}
    to:
      jdbc: {url: 'URL', table: fresh, options: OPTIONS LOGIN}
    dead_letters: DEAD
"""
SOURCE = """
  from_table:
    from:
      jdbc: {url: 'URL', table: orders, options: OPTIONS LOGIN}
      growing: id
    sql: SELECT id, kind, price FROM input
    to: {topic: TARGET}
"""


@pytest.fixture(scope="module", params=["h2", "sqlite", "mariadb"])
def shop(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Opened]:
    home = tmp_path_factory.mktemp("shop")
    if request.param == "h2":
        yield Filed(spark, f"jdbc:h2:file:{home}/shop")
    elif request.param == "sqlite":
        yield Filed(spark, f"jdbc:sqlite:{home}/shop.db", {"numPartitions": "1"})
    else:
        with databases.mariadb() as server, pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, server.password)
            yield Served(spark, server.url, server.user, VARIABLE)


@pytest.fixture
def orders(shop: Opened) -> Iterator[Opened]:
    """Create a table in the database."""
    shop.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, kind VARCHAR(10), price DECIMAL(9, 2) DEFAULT 1.5)"
    )
    yield shop
    shop.execute("DROP TABLE orders")


def declared(flows: str, shop: Opened) -> str:
    table = shop.table("any")
    login = f", {LOGIN}" if table.user else ""
    options = json.dumps(dict(table.options))
    return flows.replace("URL", table.url).replace("OPTIONS", options).replace(" LOGIN", login)


def test_a_batch_is_written_once_wherever_the_driver_dies(orders: Opened) -> None:
    ids = write_dying_everywhere(orders, "orders")
    found = orders.rows("SELECT id, kind, price FROM orders ORDER BY id")
    assert [(number, kind, float(price)) for number, kind, price in found] == [
        (each, "k", 1.5) for each in ids
    ]
    assert orders.rows(f"SELECT batch FROM barnabas_batches WHERE query_id = '{QUERY}'") == [
        (ids[-1] // 100,)
    ]


def test_a_missing_table_is_created_and_filled_once(scene: Scene, shop: Opened) -> None:
    for first, end in ((0, 50), (50, 70)):
        scene.send(
            *(
                json.dumps({"id": each, "kind": "ä \"'", "price": each / 4}).encode()
                for each in range(first, end)
            )
        )
        assert scene.run(declared(FLOWS, shop))["to_table"].error is None
        scene.remove_last_commit("to_table")
    assert scene.run(declared(FLOWS, shop))["to_table"].error is None
    [id_name, kind, price] = shop.columns("fresh")
    found = shop.rows(f"SELECT {id_name}, CAST({kind} AS CHAR(4)), {price} FROM fresh ORDER BY 1")
    assert [(number, word, float(amount)) for number, word, amount in found] == [
        (each, "ä \"'", each / 4) for each in range(70)
    ]


def test_rows_added_to_a_table_are_read_once(scene: Scene, orders: Opened) -> None:
    for first, end in ((0, 30), (30, 50)):
        orders.execute(
            *(
                f"INSERT INTO orders VALUES ({each}, 'ä''{each}', {'NULL' if each % 3 else each / 4})"
                for each in range(first, end)
            )
        )
        assert scene.run(declared(SOURCE, orders))["from_table"].error is None
        scene.remove_last_commit("from_table")
    assert scene.run(declared(SOURCE, orders))["from_table"].error is None
    rows = [json.loads(value) for value, _ in scene.records(scene.target)]
    expected = [
        {"id": each, "kind": f"ä'{each}", "price": None if each % 3 else each / 4} for each in range(50)
    ]
    assert sorted(rows, key=lambda row: row["id"]) == expected
