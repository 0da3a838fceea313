"""Selecting classes to run, and printing results."""

import json
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from interop.kafka_tests.harness import CLASS_S, Harness
from interop.kafka_tests.results import CLASS_ENDED, ClassRun
from interop.kafka_tests.run import print_failures, run_classes

PASSES = {
    "status": "SUCCESSFUL",
    "test": True,
    "class": "K",
    "method": "m",
    "name": "m()",
    "id": "1",
    "brokers": 1,
}


@dataclass(frozen=True)
class Recorded(Harness):
    """Writes given lines instead of starting a JVM."""

    lines: tuple[dict[str, object], ...] = (PASSES, {"status": CLASS_ENDED})

    def run(self, class_name: str, limit_s: float = CLASS_S, options: object = ()) -> ClassRun:
        with self.results_path(class_name).open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in self.lines)
        return self.results(class_name)


def test_each_class_runs_and_is_summarized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_classes(Recorded("barnabas", tmp_path), ["a.K", "a.L"], 60, [])
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("a.K: 1 passed")
    assert second.endswith("a.L: 1 passed")


def test_a_complete_class_does_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness = Recorded("barnabas", tmp_path)
    harness.run("a.K")
    run_classes(harness, ["a.K"], 60, [])
    assert capsys.readouterr().out == ""


def test_several_classes_run_concurrently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meeting = threading.Barrier(2, timeout=10)

    class Meeting(Recorded):
        def run(self, class_name: str, limit_s: float = CLASS_S, options: object = ()) -> ClassRun:
            meeting.wait()
            return super().run(class_name, limit_s, options)

    run_classes(Meeting("barnabas", tmp_path), ["a.K", "a.L"], 60, [], jobs_count=2)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_no_class_starts_after_the_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_classes(Recorded("barnabas", tmp_path), ["a.K"], 0, [])
    assert "call again with --resume" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_unlisted_failures_are_printed_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = PASSES | {"status": "FAILED", "message": "expected: 1", "log": "b.log"}
    harness = Recorded("barnabas", tmp_path, (failure,))
    harness.run("K")
    assert print_failures(harness, ["K"], []) == 1
    assert capsys.readouterr().out == "FAILED K.m m()\n    expected: 1\n    b.log\n"
