"""Tests that an earlier report counts."""

from pathlib import Path

import pytest
from interop.kafka_tests import former, run
from interop.kafka_tests.classify import Classification
from interop.kafka_tests.harness import Harness
from interop.kafka_tests.report import Classified, document
from interop.kafka_tests.results import Result

PASSED, JVM, ASSUMED = (
    Classification("passed"),
    Classification("not applicable", "internals of the JVM"),
    Classification("not applicable", "assumption"),
)
TEXTS = Classification("listed", "", "the texts, and their order")
NAMES = ["a.b.Fetch", "a.b.Quiet", "a.c.Same", "a.d.Same"]


def ended(name: str, method: str, brokers: int = 1, message: str = "") -> Result:
    return Result(name, method, f"{method}()", method, "", brokers=brokers, message=message)


CLASSIFIED: Classified = {
    "a.b.Fetch": [
        (ended("a.b.Fetch", "one"), PASSED),
        (ended("a.b.Fetch", "two", brokers=3), PASSED),
        (ended("a.b.Fetch", "three"), TEXTS),
        (ended("a.b.Fetch", "three"), TEXTS),
        (ended("a.b.Fetch", "four", message="expected: 1 | 2. But"), Classification("failed")),
        (ended("a.b.Fetch", "five"), JVM),
        (ended("a.b.Fetch", "six"), ASSUMED),
    ],
    "a.b.Quiet": [],
    "a.c.Same": [(ended("a.c.Same", "one"), PASSED)],
    "a.d.Same": [(ended("a.d.Same", "one"), TEXTS)],
}
PAGE = document(CLASSIFIED, NAMES, set(NAMES))


def test_a_report_of_an_earlier_one_is_the_same() -> None:
    assert document(former.classes(PAGE, NAMES), NAMES, set(NAMES)) == PAGE


def test_a_class_that_is_not_complete_is_left_out() -> None:
    page = document(CLASSIFIED, NAMES, set(NAMES) - {"a.b.Fetch"})
    assert list(former.classes(page, NAMES)) == ["a.b.Quiet", "a.c.Same", "a.d.Same"]


def test_a_class_that_no_longer_exists_is_left_out() -> None:
    assert list(former.classes(PAGE, ["a.b.Fetch"])) == ["a.b.Fetch"]


def test_a_class_that_did_not_run_keeps_what_the_report_has_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "REPORT", tmp_path / "report.md")
    run.REPORT.write_text(PAGE)
    (tmp_path / "a.b.Quiet.jsonl").write_text(
        '{"status": "SUCCESSFUL", "test": true, "name": "m()", "id": "1", "brokers": 1}\n{"status": "CLASS_ENDED"}\n'
    )
    run.write_report(Harness("barnabas", tmp_path), NAMES, [])
    assert run.REPORT.read_text() == document(
        CLASSIFIED | {"a.b.Quiet": [(ended("a.b.Quiet", "m"), PASSED)]}, NAMES, set(NAMES)
    )
