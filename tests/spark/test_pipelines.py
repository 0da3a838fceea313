"""Pipelines in real Spark: each input is written once or becomes a dead letter, whatever fails in between."""

import json
from collections.abc import Callable

import pytest
from deltalake import DeltaTable

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.pipelines.state import FlowState, pipeline_status
from support.pipelines import Scene

COUNT = 90
SCHEMA = "id BIGINT, kind STRING"
BROKEN = b"no json"


def flow(sink: str, more: str = "") -> str:
    return f"""
  one:
    from: {{topic: SOURCE, format: json, schema: '{SCHEMA}', batch_rows_max: 40}}
    to: {sink}
    dead_letters: DEAD
{more}
"""


def in_topic(scene: Scene) -> list[int]:
    return sorted(json.loads(value)["id"] for value, _ in scene.records(scene.target))


def in_delta(scene: Scene) -> list[int]:
    return sorted(DeltaTable(scene.home / "table").to_pyarrow_table()["id"].to_pylist())


def in_parquet(scene: Scene) -> list[int]:
    rows = scene.spark.read.parquet(str(scene.home / "files"))
    return sorted(row["id"] for row in rows.select("id").collect())


SINKS = [
    pytest.param("{topic: TARGET}", in_topic, id="topic"),
    pytest.param("{delta: table, partition_by: [kind]}", in_delta, id="delta"),
    pytest.param("{parquet: files, partition_by: [kind]}", in_parquet, id="parquet"),
]


@pytest.mark.parametrize(("sink", "found"), SINKS)
def test_a_repeated_batch_is_written_once_with_its_dead_letters(
    scene: Scene, sink: str, found: Callable[[Scene], list[int]]
) -> None:
    scene.send_ids(0, COUNT)
    scene.send(BROKEN, None)
    first = scene.run(flow(sink))["one"]
    assert (first.state, first.error) == (FlowState.DONE, None)
    assert (first.rows_in, first.rows_out, first.dead_letters, first.lag) == (COUNT + 2, COUNT, 2, 0)
    scene.remove_last_commit("one")
    scene.send_ids(COUNT, 2 * COUNT)
    second = scene.run(flow(sink))["one"]
    assert (second.state, second.error) == (FlowState.DONE, None)
    assert found(scene) == list(range(2 * COUNT))
    assert sorted(value for value, _ in scene.records(scene.dead)) == ["", BROKEN.decode()]


def test_dead_letters_keep_their_bytes_with_reason_and_source(scene: Scene) -> None:
    scene.send(b'{"id": 1}', b"\xff\xfe", b'{"id": "x"}')
    expectations = "    expect: [{name: early, condition: id > 5, action: dead_letter}]"
    status = scene.run(flow("{topic: TARGET}", expectations))["one"]
    assert status.dead_letters == 3, status
    starts = {TopicPartition(scene.dead, index): EARLIEST for index in range(2)}
    records = scene.broker.client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
    letters = {
        record.value: {key: (value or b"").decode() for key, value in record.headers} for record in records
    }
    undecodable = letters[b"\xff\xfe"]
    assert int(undecodable.pop("barnabas.timestamp")) > 0
    assert undecodable == {
        "barnabas.reason": "the value is not UTF-8",
        "barnabas.flow": "one",
        "barnabas.topic": scene.source,
        "barnabas.partition": "1",
        "barnabas.offset": "0",
    }
    assert letters[b'{"id": "x"}']["barnabas.reason"].startswith(
        "the value is not JSON with the columns id BIGINT"
    )
    early = letters[b'{"id":1,"kind":null}']
    assert early == {"barnabas.reason": "expectation early: id > 5 is not true", "barnabas.flow": "one"}


def test_times_in_json_keep_their_microseconds(scene: Scene) -> None:
    row = {"id": 7, "at": "2026-01-02T03:04:05.678901Z", "local": "2026-01-02T03:04:05.000001"}
    scene.send(json.dumps(row).encode(), json.dumps({**row, "id": 1}).encode())
    times = """
  times:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ'}
    expect: [{name: large, condition: id > 5, action: dead_letter}]
    to: {topic: TARGET}
    dead_letters: DEAD
"""
    assert scene.run(times)["times"].error is None
    assert [json.loads(value) for value, _ in scene.records(scene.target)] == [row]
    assert [json.loads(value) for value, _ in scene.records(scene.dead)] == [{**row, "id": 1}]


def test_a_failing_flow_stops_alone_and_writes_nothing_of_its_batch(scene: Scene) -> None:
    scene.send_ids(0, COUNT)
    others = """
  bad_sql:
    from: {topic: SOURCE, format: raw}
    sql: SELECT nothing FROM input
    to: {parquet: never}
  strict:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT'}
    expect:
      - {name: small, condition: id < 50, action: fail}
      - {name: even, condition: id % 2 = 0, action: drop}
    to: {delta: strict}
"""
    found = scene.run(flow("{topic: TARGET}") + others)
    assert found["one"].state is FlowState.DONE
    assert in_topic(scene) == list(range(COUNT))
    assert found["bad_sql"].state is FlowState.FAILED
    assert "pipelines.yml:13: sql: " in (found["bad_sql"].error or "")
    assert found["strict"].state is FlowState.FAILED
    assert (found["strict"].error or "").startswith(
        "expectation small: id < 50 is not true: 40 in this batch"
    )
    assert not DeltaTable.is_deltatable(str(scene.home / "strict"))
    seen = pipeline_status(scene.pipeline)
    assert [each.state.value for each in seen] == ["done", "failed", "failed"]


def test_an_invalid_record_fails_a_flow_without_dead_letters(scene: Scene) -> None:
    scene.send(BROKEN)
    status = scene.run(flow("{delta: table}").replace("dead_letters: DEAD", ""))["one"]
    assert status.state is FlowState.FAILED
    assert f"the first of {scene.source}-0 offset 0: no json; set dead_letters: TOPIC" in (status.error or "")
