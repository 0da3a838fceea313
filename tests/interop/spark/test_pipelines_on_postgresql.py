"""Pipelines to and from tables of PostgreSQL: each row once, even if processes die."""

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from interop import databases
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.state import pipeline_status
from pyspark_barnabas.writers import jdbc
from pyspark_barnabas.writers.batch import BatchName
from support.databases import QUERY, Served, write_dying_everywhere
from support.pipelines import Driver, Scene

COUNT = 80
VARIABLE = "SHOP_PASSWORD"
MADE = (
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, kind VARCHAR(10), price NUMERIC(9, 2) DEFAULT 1)",
    "CREATE TABLE shop.events (id SERIAL, at TIMESTAMPTZ, price NUMERIC(9, 2), tags TEXT)",
)
SINK = """
  to_table:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 20}
    to:
      jdbc: {url: 'URL', table: shop.orders, user: USER, password: {env: SHOP_PASSWORD}}
    dead_letters: DEAD
"""
SOURCES = """
  by_number:
    from:
      jdbc: {url: 'URL', table: shop.events, user: USER, password: {env: SHOP_PASSWORD}}
      growing: id
    sql: SELECT id, price, date_format(at, 'HH:mm:ss.SSSSSS') AS at, tags FROM input
    to: {topic: TARGET}
  by_time:
    from:
      jdbc: {url: 'URL', table: shop.events, user: USER, password: {env: SHOP_PASSWORD}}
      growing: at
    to: {topic: DEAD}
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[Served]:
    with databases.postgresql() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, server.password)
        made = Served(spark, server.url, server.user, VARIABLE)
        made.execute(*MADE)
        yield made


def declared(flows: str, shop: Served) -> str:
    return flows.replace("URL", shop.url).replace("USER", databases.USER)


@pytest.mark.long
def test_each_row_is_written_once_when_the_driver_is_killed(scene: Scene, shop: Served) -> None:
    scene.send_ids(0, COUNT)
    scene.send(b"broken")
    file = scene.declare(declared(SINK, shop))
    killed = Driver(file, "--conf", f"spark.jars={databases.drivers()}")
    killed.wait_for(lambda: (pipeline_status(scene.pipeline)[0].batch or 0) >= 1)
    killed.kill()
    there = shop.rows("SELECT count(*) FROM shop.orders")[0][0]
    assert there < COUNT, "it was killed half-way"
    assert scene.run(declared(SINK, shop))["to_table"].error is None
    found = shop.rows("SELECT id, kind, price::text FROM shop.orders ORDER BY id")
    assert found == [(number, f"k{number % 3}", "1.00") for number in range(COUNT)]
    assert [value for value, _ in scene.records(scene.dead)] == ["broken"]
    assert shop.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'shop' ORDER BY 1") == [
        ("barnabas_batches",),
        ("events",),
        ("orders",),
    ]


def test_a_batch_is_written_once_wherever_the_driver_dies(shop: Served) -> None:
    shop.execute("CREATE TABLE shop.written (id BIGINT PRIMARY KEY, kind VARCHAR(10))")
    ids = write_dying_everywhere(shop, "shop.written")
    assert [row[0] for row in shop.rows("SELECT id FROM shop.written ORDER BY id")] == ids
    assert shop.rows(f"SELECT batch FROM shop.barnabas_batches WHERE query_id = '{QUERY}'") == [
        (ids[-1] // 100,)
    ]
    shop.execute("DROP TABLE shop.written")


def test_conversion_and_permission_errors_are_reported_without_the_password(
    spark: SparkSession, shop: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = shop.table("shop.orders")
    with pytest.raises(FlowError, match="has no column word; the table has id, kind, price"):
        jdbc.check_table(spark, orders, ["id", "word"])
    rows = spark.range(90_000, 90_010, 1, 2).selectExpr("id", "'longer than ten' AS kind")
    with pytest.raises(FlowError, match="too long"):
        jdbc.write_jdbc(rows, orders, "one", BatchName(QUERY, 100), 10)
    assert shop.rows("SELECT count(*) FROM shop.orders WHERE id >= 90000") == [(0,)]
    monkeypatch.setenv(VARIABLE, "close sesame")
    with pytest.raises(FlowError, match="authentication failed") as refused:
        jdbc.check_table(spark, orders, ["id"])
    assert "sesame" not in str(refused.value)


def test_rows_added_to_a_table_are_read_once(scene: Scene, shop: Served) -> None:
    flows = declared(SOURCES, shop)
    insert = (
        "INSERT INTO shop.events (at, price, tags) SELECT timestamptz '{}' + i * interval '1.000001 s', i / 4.0, {} "
        "FROM generate_series(1, {}) AS i"
    )
    shop.execute(insert.format("2026-01-01 00:00:00Z", "'ä, \"b\"'", 30))
    for count in (30, 50):
        assert {each.error for each in scene.run(flows).values()} == {None}
        by_number = [json.loads(value) for value, _ in scene.records(scene.target)]
        assert sorted(each["id"] for each in by_number) == list(range(1, count + 1))
        assert sorted(json.loads(value)["id"] for value, _ in scene.records(scene.dead)) == list(
            range(1, count + 1)
        )
        if count == 30:
            for flow in ("by_number", "by_time"):
                scene.remove_last_commit(flow)
            shop.execute(insert.format("2026-01-02 00:00:00Z", "NULL", 20))
    first = next(each for each in by_number if each["id"] == 1)
    assert first == {"id": 1, "price": 0.25, "at": "00:00:01.000001", "tags": 'ä, "b"'}
