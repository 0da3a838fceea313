"""Parsing of the Java runner's lines."""

import json
from typing import Any

from interop.kafka_tests.results import CLASS_ENDED, INTERRUPTED, NEVER_ENDED, STARTED, read


def line(status: str, test_id: str = "1", **fields: Any) -> str:
    return json.dumps(
        {"status": status, "test": True, "class": "K", "method": "m", "name": "m()", "id": test_id} | fields
    )


def ended(status: str) -> str:
    return json.dumps({"status": status})


def test_a_tests_last_line_is_its_result() -> None:
    [result] = read(
        [line(STARTED), line("FAILED", ms=5, message="no"), line("SUCCESSFUL", ms=7)]
    ).results.values()
    assert (result.key, result.status, result.ms, result.message) == ("K.m", "SUCCESSFUL", 7, "")


def test_a_class_is_complete_when_its_tests_have_ended() -> None:
    assert not read([line("SUCCESSFUL")]).complete
    assert read([line("SUCCESSFUL"), ended(CLASS_ENDED)]).complete


def test_an_interrupted_test_runs_again() -> None:
    run = read([line("SUCCESSFUL", "1"), line(STARTED, "2")])
    assert run.done == ["1"]


def test_a_test_that_crashes_its_jvm_twice_is_incomplete() -> None:
    [result] = read([line(STARTED), line(STARTED)]).results.values()
    assert result.status == NEVER_ENDED


def test_an_interrupted_run_does_not_fail_a_test() -> None:
    assert read([line(STARTED), ended(INTERRUPTED), line(STARTED)]).results == {}


def test_a_truncated_line_is_ignored() -> None:
    assert read([line("SUCCESSFUL")[:40]]).results == {}
