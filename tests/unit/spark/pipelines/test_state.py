"""State of flows, and exclusive runs."""

import json
from pathlib import Path

import pytest

from pyspark_barnabas.pipelines.engine import lag_of, parsed
from pyspark_barnabas.pipelines.parser import read_pipeline
from pyspark_barnabas.pipelines.state import (
    FlowState,
    FlowStatus,
    PipelineRuns,
    StateDirectory,
    pipeline_status,
    starting_at,
)

FILE = """\
bootstrap: b:9092
state: state
flows:
  one: {from: {topic: in, format: raw}, to: {topic: out}}
"""


def test_a_status_round_trips(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    status = FlowStatus("one", FlowState.FAILED, 3, 10, 7, 2, 1, 5.5, 0, "why")
    state.write_status(status)
    assert state.status("one") == status
    assert state.status("two") == FlowStatus("two", FlowState.NEW)


def test_one_run_at_a_time_uses_the_directory(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    assert not state.is_held()
    with state.locked():
        assert state.is_held()
        with pytest.raises(PipelineRuns, match="runs already"), StateDirectory(tmp_path).locked():
            pass
    assert not state.is_held()


def test_a_flow_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    position = tmp_path / "pipelines.yml"
    position.write_text(FILE)
    pipeline = read_pipeline(position)
    state = StateDirectory(pipeline.state)
    with state.locked():
        state.write_status(FlowStatus("one", FlowState.RUNNING))
        assert [each.state for each in pipeline_status(pipeline)] == [FlowState.RUNNING]
    assert [each.state for each in pipeline_status(pipeline)] == [FlowState.KILLED]


def test_a_flow_continues_after_its_last_completed_batch(tmp_path: Path) -> None:
    position = tmp_path / "pipelines.yml"
    position.write_text(FILE)
    pipeline = read_pipeline(position)
    state, [flow] = StateDirectory(pipeline.state), pipeline.flows
    assert starting_at(state, flow) is None
    for folder, numbers in (("commits", (9, 10)), ("offsets", (9, 10, 11))):
        (state.checkpoint("one") / folder).mkdir(parents=True)
        for number in numbers:
            text = "v1\n{}\n" + json.dumps({"in": {"0": number}, "#topicId:in:AAAAAAAAAAAAAAAAAAAAAg": {}})
            (state.checkpoint("one") / folder / str(number)).write_text(text)
    assert starting_at(state, flow) == {"in": {"0": 10}}


def test_lag_is_the_distance_from_a_batchs_end_to_the_topics() -> None:
    end, latest = parsed('{"a": {"0": 3, "1": 9}}'), parsed({"a": {"0": 5, "1": 9, "2": 4}})
    assert lag_of(end, latest) == 6
    assert lag_of(None, latest) is None
    assert parsed('{"a": {"0": 3}, "#topicId:a:AAAAAAAAAAAAAAAAAAAAAg": {}}') == {"a": {"0": 3}}
    assert parsed('{"logOffset": 3}') is None
    assert parsed("none") is None
