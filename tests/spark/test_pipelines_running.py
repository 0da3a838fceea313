"""Running pipelines: windows and late events, triggers, stops and kills."""

import json
import re
import signal
import urllib.request
from threading import Event

import pytest
from deltalake import DeltaTable

from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.state import FlowState, FlowStatus, pipeline_status
from support.pipelines import WAIT_S, Driver, Scene
from support.terminals import Terminal

COUNT = 200

WINDOWS = """
  windows:
    from: {topic: SOURCE, format: json, schema: 'at TIMESTAMP, amount INT'}
    watermark: {column: at, delay: 10 minutes}
    sql: >
      SELECT date_format(window(at, '5 minutes').start, 'HH:mm') AS start, sum(amount) AS total
      FROM input GROUP BY window(at, '5 minutes')
    to: {topic: TARGET, key: start}
    dead_letters: DEAD
"""

THREE = """
  to_topic:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 20}
    to: {topic: TARGET}
    dead_letters: DEAD
  to_delta:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 20}
    expect: [{name: whole, condition: id IS NOT NULL, action: dead_letter}]
    to: {delta: table, partition_by: [kind]}
    dead_letters: DEAD
  to_parquet:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 20}
    to: {parquet: files}
    dead_letters: DEAD
"""

ENDLESS = """
  endless:
    from: {topic: SOURCE, format: raw, batch_rows_max: 50}
    to: {topic: TARGET, format: raw}
    trigger: {interval: 100 milliseconds}
"""


def event(at: str, amount: int = 1) -> bytes:
    return json.dumps({"at": f"2026-01-01T{at}:00Z", "amount": amount}).encode()


def totals(scene: Scene) -> list[tuple[str, int]]:
    rows = [json.loads(value) for value, _ in scene.records(scene.target)]
    return sorted((row["start"], row["total"]) for row in rows)


def test_a_window_is_written_after_the_watermark_and_late_events_do_not_change_it(
    scene: Scene,
) -> None:
    scene.send(event("10:00"), event("10:04", 2), b"broken", event("11:00"))
    first = scene.run(WINDOWS)["windows"]
    assert (first.state, first.error, first.dead_letters) == (FlowState.DONE, None, 1)
    assert totals(scene) == [("10:00", 3)]
    scene.send(event("10:02", 100), event("12:00"))
    assert scene.run(WINDOWS)["windows"].state is FlowState.DONE
    assert totals(scene) == [("10:00", 3), ("11:00", 1)]


def test_a_plan_shows_what_would_be_read_and_written_and_leaves_no_files(scene: Scene) -> None:
    scene.send_ids(0, 5)
    wrong = "\n  wrong:\n    from: {topic: SOURCE, format: raw}\n    sql: SELECT\n    to: {delta: never}\n"
    scene.declare(THREE + wrong)
    to_topic, to_delta, _, failing = pipeline_plan(scene.spark, scene.pipeline)
    assert to_topic.offsets == ((scene.source, 0, 0, 3), (scene.source, 1, 0, 2))
    assert (to_topic.source, to_topic.sink) == (f"topic {scene.source}", f"topic {scene.target}")
    assert to_delta.schema == "id bigint, kind string"
    assert to_delta.expectations == ("whole: id IS NOT NULL, else dead_letter",)
    assert "pipelines.yml:" in (failing.error or "")
    assert not (scene.home / "state").exists()
    assert not (scene.home / "table").exists()


def test_a_flow_that_runs_once_reads_everything_in_one_batch_and_a_plan_continues_after_it(
    scene: Scene,
) -> None:
    scene.send_ids(0, 10)
    flow = ENDLESS.replace("{interval: 100 milliseconds}", "once").replace(", batch_rows_max: 50", "")
    done = scene.run(flow)["endless"]
    assert (done.state, done.error, done.batch, done.rows_out) == (FlowState.DONE, None, 0, 10)
    [plan] = pipeline_plan(scene.spark, scene.pipeline)
    assert plan.offsets == ((scene.source, 0, 5, 5), (scene.source, 1, 5, 5))


def test_a_flow_with_an_interval_runs_until_stopped_and_continues_later(scene: Scene) -> None:
    scene.send_ids(0, 100)
    for end in (100, 200):
        stopping = Event()

        def stop_at_end(statuses: list[FlowStatus], stopping: Event = stopping) -> None:
            if statuses[0].lag == 0:
                stopping.set()

        ended = scene.run(ENDLESS, stopping=stopping, watcher=stop_at_end)["endless"]
        assert (ended.state, ended.error) == (FlowState.STOPPED, None)
        assert len(scene.records(scene.target)) == end
        scene.send_ids(100, 200)


def test_files_are_written_to_a_topic_and_transformed_in_python(scene: Scene) -> None:
    (scene.home / "in").mkdir()
    (scene.home / "in" / "a.csv").write_text("1,one\nno number,x\n")
    (scene.home / "shouting.py").write_text(
        "def loud(rows):\n    return rows.selectExpr('id', 'upper(word) AS word')\n"
    )
    flow = """
  files:
    from: {files: in, format: csv, schema: 'id INT, word STRING'}
    python: shouting:loud
    to: {topic: TARGET}
    dead_letters: DEAD
"""
    done = scene.run(flow)["files"]
    assert (done.state, done.error) == (FlowState.DONE, None)
    assert [value for value, _ in scene.records(scene.target)] == ['{"id":1,"word":"ONE"}']
    assert "no number,x" in [value for value, _ in scene.records(scene.dead)]


@pytest.mark.long
def test_each_sink_has_each_row_once_when_the_driver_is_killed(scene: Scene) -> None:
    scene.send_ids(0, COUNT)
    scene.send(b"broken", b"more")
    file = scene.declare(THREE)
    for batch in (1, 4):
        driver = Driver(file)
        driver.wait_for(
            lambda batch=batch: all((each.batch or 0) >= batch for each in pipeline_status(scene.pipeline))
        )
        driver.kill()
        assert FlowState.KILLED in {each.state for each in pipeline_status(scene.pipeline)}
    assert {(each.state, each.error) for each in scene.run(THREE).values()} == {(FlowState.DONE, None)}
    expected = list(range(COUNT))
    assert sorted(json.loads(value)["id"] for value, _ in scene.records(scene.target)) == expected
    assert sorted(DeltaTable(scene.home / "table").to_pyarrow_table()["id"].to_pylist()) == expected
    files = scene.spark.read.parquet(str(scene.home / "files")).select("id").collect()
    assert sorted(row["id"] for row in files) == expected
    assert sorted(value for value, _ in scene.records(scene.dead)) == 3 * ["broken"] + 3 * ["more"]


def test_sigterm_completes_the_batch_and_metrics_and_status_are_available_meanwhile(scene: Scene) -> None:
    scene.send_ids(0, COUNT)
    driver = Driver(scene.declare(ENDLESS), "--metrics-port", "0")
    driver.wait_for(lambda: pipeline_status(scene.pipeline)[0].lag == 0)
    assert pipeline_status(scene.pipeline)[0].state is FlowState.RUNNING
    [url] = [line.split()[1] for line in driver.output.splitlines() if line.startswith("metrics: ")]
    driver.wait_for(
        lambda: b'rows_written{flow="endless"} %d.0' % COUNT in urllib.request.urlopen(url).read()
    )
    driver.process.send_signal(signal.SIGTERM)
    assert driver.process.wait(WAIT_S) == 0, driver.output[-4000:]
    assert pipeline_status(scene.pipeline)[0].state is FlowState.STOPPED
    assert len(scene.records(scene.target)) == COUNT


def test_a_bar_on_a_terminal_shows_progress_and_rate(scene: Scene) -> None:
    scene.send_ids(0, COUNT)
    file = scene.declare(ENDLESS.replace("100 milliseconds", "1000 days"))
    with Terminal() as terminal, Driver(file, terminal=terminal.stream) as driver:
        terminal.read_until(r"endless .* 50/200 running [1-9][\d,]* rows/s")
        driver.process.send_signal(signal.SIGTERM)
        terminal.read_to_the_end()
        assert driver.process.wait(WAIT_S) == 0, terminal.text[-4000:]
    assert re.search(r"endless .* 50/200 stopped [1-9][\d,]* rows/s", terminal.text)
