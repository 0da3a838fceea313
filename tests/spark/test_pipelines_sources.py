"""Sources of pipelines in real Spark: sampled schemas, CSV in topics, Parquet files; and updated rows."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.state import FlowState
from support.pipelines import WAIT_S, Driver, Scene

INFERRED = """
  inferred:
    from: {topic: SOURCE, format: json}
    to: {topic: TARGET}
    dead_letters: DEAD
"""


def values(scene: Scene, topic: str) -> list[object]:
    return [json.loads(value) for value, _ in scene.records(topic)]


def test_a_schema_is_inferred_from_the_first_sample_and_kept(scene: Scene) -> None:
    scene.send(b'{"id": 1, "kind": "a"}', b"no json", b'{"id": 2, "at": {"x": 0.5}}')
    scene.declare(INFERRED)
    [first] = pipeline_plan(scene.spark, scene.pipeline)
    assert (first.error, first.schema) == (None, "at struct<x:double>, id bigint, kind string")
    pinned = scene.home / "state" / "inferred" / "schema.json"
    kept = pinned.read_text()
    scene.send(b'{"id": "text", "more": 1}', b'{"id": 3, "more": 1}')
    done = scene.run(INFERRED)["inferred"]
    assert (done.state, done.rows_out, done.dead_letters) == (FlowState.DONE, 3, 2)
    assert sorted(values(scene, scene.target), key=lambda row: row["id"]) == [
        {"at": None, "id": 1, "kind": "a"},
        {"at": {"x": 0.5}, "id": 2, "kind": None},
        {"at": None, "id": 3, "kind": None},
    ]
    assert sorted(value for value, _ in scene.records(scene.dead)) == ["no json", '{"id": "text", "more": 1}']
    assert pinned.read_text() == kept
    pinned.unlink()
    [second_run] = pipeline_plan(scene.spark, scene.pipeline)
    assert second_run.schema == "at struct<x:double>, id string, kind string, more bigint"


def test_the_command_shows_the_inferred_schema_that_later_runs_use(scene: Scene) -> None:
    scene.send(b'{"id": 1, "kind": "a"}')
    with Driver(scene.declare(INFERRED), command="plan") as planned:
        assert planned.process.wait(WAIT_S) == 0, planned.output[-4000:]
    what = f"inferred: topic {scene.source} -> topic {scene.target} (available_now)"
    assert f"{what}\n  rows: id bigint, kind string\n" in planned.output
    pinned = scene.home / "state" / "inferred" / "schema.json"
    kept = pinned.read_text()
    for number in (2, 3):
        scene.send(b'{"id": %d, "kind": "b", "field_%d": true}' % (number, number))
        done = scene.run(INFERRED)["inferred"]
        assert (done.state, done.error, done.dead_letters) == (FlowState.DONE, None, 0)
    assert sorted(values(scene, scene.target), key=lambda row: row["id"]) == [
        {"id": 1, "kind": "a"},
        {"id": 2, "kind": "b"},
        {"id": 3, "kind": "b"},
    ]
    assert pinned.read_text() == kept


def test_without_json_there_is_no_schema_and_the_plan_has_a_hint(scene: Scene) -> None:
    scene.send(b"no json")
    file = scene.declare(INFERRED)
    [plan] = pipeline_plan(scene.spark, scene.pipeline)
    assert plan.error == f"{file}:6: topic {scene.source} has no JSON to infer a schema from; set schema:"


def test_a_flow_that_cannot_be_planned_does_not_prevent_other_plans(scene: Scene) -> None:
    scene.send(b'{"id": 1}')
    lost = INFERRED.replace("inferred:", "lost:").replace("SOURCE", "there-is-no-such-topic")
    hidden = INFERRED.replace("inferred:", "hidden:").replace("{topic: TARGET}", "{parquet: out}")
    hidden = hidden.replace("    to:", "    sql: SELECT id, 1 AS batch FROM input\n    to:")
    scene.declare(lost + hidden + INFERRED)
    first, second, last = pipeline_plan(scene.spark, scene.pipeline)
    assert "there-is-no-such-topic" in (first.error or "")
    assert "column batch: the name is reserved" in (second.error or "")
    assert (last.error, last.schema) == (None, "id bigint")


def test_csv_in_a_topic_becomes_rows_and_conversion_errors_dead_letters(scene: Scene) -> None:
    bad = [b"x,word", b"1,too,2026-01-01,many", b"3,no day,monday", b"\xff,bytes"]
    scene.send(b"1,one,2026-01-01", b'2,"a, b",', *bad)
    flow = """
  csv:
    from: {topic: SOURCE, format: csv, schema: 'id INT, word STRING, day DATE'}
    to: {topic: TARGET, key: id}
    dead_letters: DEAD
"""
    done = scene.run(flow)["csv"]
    assert (done.state, done.error, done.rows_out, done.dead_letters) == (FlowState.DONE, None, 2, 4)
    assert sorted(values(scene, scene.target), key=lambda row: row["id"]) == [
        {"id": 1, "word": "one", "day": "2026-01-01"},
        {"id": 2, "word": "a, b", "day": None},
    ]
    letters = scene.raw_records(scene.dead)
    assert sorted(value for value, _ in letters) == sorted(bad)
    assert {headers["barnabas.reason"] for _, headers in letters} == {
        "the value is not CSV with the columns id INT,word STRING,day DATE",
        "the value is not UTF-8",
    }


def test_parquet_files_are_read_once_including_later_ones(scene: Scene) -> None:
    (scene.home / "in").mkdir()
    flow = """
  files:
    from: {files: in, format: parquet, schema: 'id BIGINT, tags ARRAY<STRING>', batch_files_max: 1}
    sql: SELECT id, tags, size(tags) AS count FROM input
    expect: [{name: tagged, condition: count > 0, action: dead_letter}]
    to: {topic: TARGET}
    dead_letters: DEAD
"""
    rows = [{"id": 1, "tags": ["x", None]}, {"id": 2, "tags": []}]
    for name, part in (("a", rows), ("b", [{"id": 3, "tags": ["y"], "more": 1}])):
        pq.write_table(pa.Table.from_pylist(part), scene.home / "in" / f"{name}.parquet")
        done = scene.run(flow)["files"]
        assert (done.state, done.error, done.lag) == (FlowState.DONE, None, None)
    assert sorted(values(scene, scene.target), key=lambda row: row["id"]) == [
        {"id": 1, "tags": ["x", None], "count": 2},
        {"id": 3, "tags": ["y"], "count": 1},
    ]
    assert values(scene, scene.dead) == [{"id": 2, "tags": [], "count": 0}]


def test_with_output_mode_update_each_batch_has_the_changed_totals(scene: Scene) -> None:
    flow = """
  counts:
    from: {topic: SOURCE, format: json, schema: 'kind STRING'}
    sql: SELECT kind, count(*) AS count FROM input GROUP BY kind
    output_mode: update
    to: {topic: TARGET, key: kind}
    dead_letters: DEAD
"""
    found = []
    for kinds in ("aab", "bc"):
        scene.send(*(json.dumps({"kind": kind}).encode() for kind in kinds))
        assert scene.run(flow)["counts"].state is FlowState.DONE
        found.append(sorted(f"{row['kind']}{row['count']}" for row in values(scene, scene.target)))
    assert found == [["a2", "b1"], ["a2", "b1", "b2", "c1"]]
    file = scene.declare(flow.replace("{topic: TARGET, key: kind}", "{delta: counts}"))
    [plan] = pipeline_plan(scene.spark, scene.pipeline)
    assert plan.error == f"{file}:6: output_mode update is for topics: a table would keep the old rows, too"
