"""Database tables in pipelines: each row once, even if processes die, and secrets are not shown."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.engine import run_pipeline
from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.state import FlowState, pipeline_status
from pyspark_barnabas.writers import jdbc
from pyspark_barnabas.writers.batch import BatchName
from support.databases import QUERY, Derby, write_dying_everywhere
from support.pipelines import Driver, Scene
from support.waiting import until

COUNT = 80
MADE = "CREATE TABLE orders (id BIGINT PRIMARY KEY, kind VARCHAR(10), price DECIMAL(9, 2) DEFAULT 1)"

FLOW = """
  to_jdbc:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 20}
    to:
      jdbc: {url: 'URL', table: ORDERS}
    dead_letters: DEAD
"""


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Derby]:
    made = Derby(spark, tmp_path / "derby")
    made.execute(MADE)
    yield made
    made.shut_down()


def test_a_batch_is_written_once_wherever_the_driver_dies(derby: Derby) -> None:
    ids = write_dying_everywhere(derby, "orders")
    assert [row[0] for row in derby.rows("SELECT id FROM orders ORDER BY id")] == ids
    assert derby.rows("SELECT batch FROM barnabas_batches") == [(ids[-1] // 100,)]


def test_rows_of_superseded_attempts_are_discarded(
    spark: SparkSession, derby: Derby, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task commits its rows twice, and a former driver some more."""
    real = jdbc._save

    def thrice(rows: object, database: object, table: str) -> None:
        real(rows, database, table)
        real(rows, database, table)
        derby.execute(f"INSERT INTO {table} (id, kind, barnabas_attempt) VALUES (999, 'k', 'gone.0.9')")

    monkeypatch.setattr(jdbc, "_save", thrice)
    rows = spark.range(0, 30, 1, 2).selectExpr("id", "'k' AS kind")
    jdbc.write_jdbc(rows, derby.table("orders"), "one", BatchName(QUERY, 0), 30)
    assert derby.rows("SELECT count(*), max(id) FROM orders") == [(30, 29)]
    more = rows.selectExpr("id + 30 AS id", "kind")
    with pytest.raises(FlowError, match="30 of 31 rows were staged"):
        jdbc.write_jdbc(more, derby.table("orders"), "one", BatchName(QUERY, 1), 31)
    assert derby.rows("SELECT count(*) FROM orders") == [(30,)]


def test_a_missing_table_is_created_and_an_incompatible_one_is_reported(
    spark: SparkSession, derby: Derby
) -> None:
    rows = spark.range(3).selectExpr("id", "'text' AS word")
    jdbc.write_jdbc(rows, derby.table("fresh"), "one", BatchName(QUERY, 0), 3)
    found = derby.rows('SELECT "id", CAST("word" AS VARCHAR(9)) FROM fresh ORDER BY "id"')
    assert found == [(0, "text"), (1, "text"), (2, "text")]
    with pytest.raises(FlowError, match="has no column word; the table has ID, KIND, PRICE"):
        jdbc.check_table(spark, derby.table("orders"), ["id", "word"])


def test_a_batch_that_the_table_rejects_is_written_not_at_all(scene: Scene, derby: Derby) -> None:
    scene.send_ids(0, 10)
    scene.send(b'{"id": 20, "kind": "longer than ten"}')
    failed = scene.run(FLOW.replace("URL", derby.url))["to_jdbc"]
    assert failed.state is FlowState.FAILED
    assert (failed.error or "").startswith(f"jdbc ORDERS at jdbc:derby:{derby.directory}: ")
    assert derby.rows("SELECT count(*) FROM orders") == [(0,)]


def test_a_password_is_in_no_plan_status_error_or_log(
    scene: Scene, derby: Derby, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    hidden = "open-sesame"
    monkeypatch.setenv("ORDERS_PASSWORD", hidden)
    caplog.set_level(logging.INFO)  # below that level py4j logs all calls to Java
    scene.send(b'{"id": 20, "kind": "longer than ten"}')
    flow = FLOW.replace("URL", derby.url).replace(
        "ORDERS}", "ORDERS, user: me, password: {env: ORDERS_PASSWORD}}"
    )
    derby.execute("CREATE SCHEMA me", MADE.replace("orders", "me.orders"))
    status = scene.run(flow)["to_jdbc"]
    assert status.state is FlowState.FAILED, "it was reached, and refused the row"
    plans = pipeline_plan(scene.spark, scene.pipeline)
    output = capfd.readouterr()
    state = "".join(
        position.read_text(errors="replace")
        for position in (scene.home / "state").rglob("*")
        if position.is_file()
    )
    for text in (output.out, output.err, caplog.text, state, repr(status), repr(plans), repr(scene.pipeline)):
        assert hidden not in text


@pytest.mark.long
def test_each_row_is_written_once_when_the_driver_is_killed(scene: Scene, derby: Derby) -> None:
    scene.send_ids(0, COUNT)
    scene.send(b"broken")
    file = scene.declare(FLOW.replace("URL", derby.url))
    derby.shut_down()
    killed = Driver(file)
    killed.wait_for(lambda: (pipeline_status(scene.pipeline)[0].batch or 0) >= 1)
    killed.kill()
    until(derby.opens)
    [last] = run_pipeline(scene.spark, scene.pipeline)
    assert (last.state, last.error) == (FlowState.DONE, None)
    assert [row[0] for row in derby.rows("SELECT id FROM orders ORDER BY id")] == list(range(COUNT))
    assert [value for value, _ in scene.records(scene.dead)] == ["broken"]
