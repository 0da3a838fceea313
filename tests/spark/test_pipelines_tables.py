"""Tables as sources of pipelines: each added row is written once."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.sources.jdbc_incrementing import Takes
from pyspark_barnabas.pipelines.state import FlowState, FlowStatus
from support.databases import Derby
from support.pipelines import WAIT_S, Scene
from support.waiting import until

FROM_DELTA = """
  from_delta:
    from: {delta: table, batch_files_max: 2}
    sql: SELECT id, kind FROM input
    to: {topic: TARGET}
"""
FROM_JDBC = """
  from_jdbc:
    from:
      jdbc: {url: 'URL', table: orders}
      growing: id
    sql: SELECT ID AS id, KIND AS kind FROM input
    to: {topic: TARGET}
"""
FROM_TOPIC = """
  ids:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING'}
    to: {topic: TARGET}
"""


def forever(begun: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Work until killed, and create a file at the start."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pathlib
        import threading

        for batch in batches:
            pathlib.Path(begun).touch()
            threading.Event().wait()
            yield batch

    return wait


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Derby]:
    made = Derby(spark, tmp_path / "derby")
    made.execute("CREATE TABLE orders (id BIGINT, kind VARCHAR(10))")
    yield made
    made.shut_down()


def insert(derby: Derby, first: int, end: int) -> None:
    values = ", ".join(f"({number}, 'k')" for number in range(first, end))
    derby.execute(f"INSERT INTO orders VALUES {values}")


def append(scene: Scene, first: int, end: int) -> None:
    rows = pa.table({"id": list(range(first, end)), "kind": [f"k{each % 2}" for each in range(first, end)]})
    write_deltalake(scene.home / "table", rows, mode="append", partition_by=["kind"])


def written(scene: Scene) -> list[int]:
    rows = [json.loads(value) for value, _ in scene.records(scene.target)]
    assert all(row["kind"] for row in rows)
    return sorted(row["id"] for row in rows)


def test_rows_appended_to_a_delta_table_are_written_once(scene: Scene) -> None:
    append(scene, 0, 10)
    append(scene, 10, 20)
    scene.declare(FROM_DELTA)
    [plan] = pipeline_plan(scene.spark, scene.pipeline)
    assert (plan.error, plan.source) == (None, f"delta {scene.home}/table")
    first = scene.run(FROM_DELTA)["from_delta"]
    assert (first.state, first.error, first.batch, first.rows_out) == (FlowState.DONE, None, 1, 20)
    append(scene, 20, 30)
    scene.remove_last_commit("from_delta")
    DeltaTable(scene.home / "table").optimize.compact()
    second = scene.run(FROM_DELTA)["from_delta"]
    assert (second.state, second.error) == (FlowState.DONE, None)
    assert written(scene) == list(range(30))
    DeltaTable(scene.home / "table").delete("id = 3")
    append(scene, 30, 32)
    failed = scene.run(FROM_DELTA)["from_delta"]
    assert failed.state is FlowState.FAILED
    assert "deletes or rewrites rows" in (failed.error or "")
    skipping = FROM_DELTA.replace("table,", "table, changes: skip,")
    assert scene.run(skipping)["from_delta"].state is FlowState.DONE
    assert written(scene) == list(range(32))


def test_a_flow_may_start_after_all_rows_of_a_delta_table(scene: Scene) -> None:
    append(scene, 0, 10)
    latest = FROM_DELTA.replace("table,", "table, starting: latest,")
    assert scene.run(latest)["from_delta"].error is None
    append(scene, 10, 15)
    assert scene.run(latest)["from_delta"].error is None
    assert written(scene) == list(range(10, 15))


def test_rows_added_to_a_database_are_written_once(scene: Scene, derby: Derby) -> None:
    flow = FROM_JDBC.replace("URL", derby.url)
    assert scene.run(flow)["from_jdbc"].error is None
    insert(derby, 0, 10)
    assert scene.run(flow)["from_jdbc"].error is None
    scene.remove_last_commit("from_jdbc")
    insert(derby, 10, 20)
    (scene.home / "state" / "from_jdbc" / "taking").mkdir()  # as an interrupted extract leaves it
    done = scene.run(flow)["from_jdbc"]
    assert (done.state, done.error) == (FlowState.DONE, None)
    assert written(scene) == list(range(20))
    wrong = scene.run(flow.replace("growing: id", "growing: other"))["from_jdbc"]
    assert f"jdbc orders at jdbc:derby:{derby.directory} has no column other; the table has ID, KIND" in (
        wrong.error or ""
    )


def test_a_slow_database_does_not_delay_other_flows(
    scene: Scene, derby: Derby, monkeypatch: pytest.MonkeyPatch
) -> None:
    others_done, take = Event(), Takes.take

    def slow(takes: Takes) -> bool:
        assert others_done.wait(WAIT_S), "the other flow waits for the database"
        return take(takes)

    def watch(statuses: list[FlowStatus]) -> None:
        if [each.state for each in statuses if each.flow == "ids"] == [FlowState.DONE]:
            others_done.set()

    monkeypatch.setattr(Takes, "take", slow)
    insert(derby, 0, 10)
    scene.send_ids(10, 20)
    flows = FROM_JDBC.replace("URL", derby.url) + FROM_TOPIC
    ended = scene.run(flows, watcher=watch)
    assert [(each.state, each.error) for each in ended.values()] == [(FlowState.DONE, None)] * 2
    assert written(scene) == list(range(20))


def test_a_running_extract_is_cancelled_when_the_pipeline_is_stopped(
    scene: Scene, derby: Derby, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopping, begun = Event(), tmp_path / "begun"

    def endless(takes: Takes) -> bool:
        rows = scene.spark.range(0, 1, 1, 1)
        return bool(rows.mapInArrow(forever(str(begun)), "id bigint").count())

    def stop_when_begun() -> None:
        until(begun.exists)
        stopping.set()

    monkeypatch.setattr(Takes, "take", endless)
    waiting = Thread(target=stop_when_begun)
    waiting.start()
    ended = scene.run(FROM_JDBC.replace("URL", derby.url), stopping=stopping)["from_jdbc"]
    waiting.join()
    assert (ended.state, ended.error) == (FlowState.STOPPED, None)
    monkeypatch.undo()
    insert(derby, 0, 5)
    assert scene.run(FROM_JDBC.replace("URL", derby.url))["from_jdbc"].error is None
    assert written(scene) == list(range(5))


def test_a_flow_with_an_interval_polls_a_database_until_stopped(scene: Scene, derby: Derby) -> None:
    insert(derby, 0, 10)
    stopping, inserted = Event(), Event()

    def watch(statuses: list[FlowStatus]) -> None:
        if statuses[0].rows_out == 10 and not inserted.is_set():
            inserted.set()
            insert(derby, 10, 20)
        if statuses[0].rows_out == 20:
            stopping.set()

    flow = FROM_JDBC.replace("URL", derby.url) + "    trigger: {interval: 100 milliseconds}\n"
    ended = scene.run(flow, stopping=stopping, watcher=watch)["from_jdbc"]
    assert (ended.state, ended.error) == (FlowState.STOPPED, None)
    assert written(scene) == list(range(20))
