"""The report, from results."""

from interop.kafka_tests.classify import Classification
from interop.kafka_tests.report import count, document, of_several, summary
from interop.kafka_tests.results import Result

PASSED, LISTED, FAILED = (
    Classification("passed"),
    Classification("listed", "", "other words"),
    Classification("failed"),
)
NO_JVM = Classification("not applicable", "jvm", "a metric")
NOT_COUNTED = Classification("not counted")


def ended(method: str, brokers: int = 1, message: str = "") -> Result:
    return Result("a.b.Fetch", method, f"{method}()", method, "", brokers=brokers, message=message)


CLASSIFIED = {
    "a.b.Fetch": [
        (ended("one"), PASSED),
        (ended("two", brokers=3), PASSED),
        (ended("three"), LISTED),
        (ended("four", message="expected: `1`\nbut was: 2"), FAILED),
        (ended("five"), NO_JVM),
        (ended("six"), NOT_COUNTED),
    ]
}


def test_a_class_has_a_line_with_its_counts() -> None:
    assert "| Fetch | 5 | 2 | 1 | 2 | 1 jvm |" in document(CLASSIFIED, ["a.b.Fetch"], {"a.b.Fetch"})


def test_the_totals_count_applicable_tests() -> None:
    text = document(CLASSIFIED, ["a.b.Fetch"], {"a.b.Fetch"})
    assert "5 tests in 1 classes; 1 do not apply" in text
    assert "Of the 4 that do, 2 pass (50.0 %)" in text


def test_failures_are_listed_with_their_reasons() -> None:
    text = document(CLASSIFIED, ["a.b.Fetch"], {"a.b.Fetch"})
    assert "| other words | Fetch.three |" in text
    assert "- Fetch.four: `expected: '1' but was: 2`" in text


def test_incomplete_classes_are_named() -> None:
    text = document(CLASSIFIED, ["a.b.Fetch", "a.b.Other"], set())
    assert "| Fetch (not complete) |" in text
    assert "2 classes: Fetch, Other." in text


def test_classes_of_equal_names_have_their_packages() -> None:
    text = document({"a.Fetch": [(ended("x"), PASSED)], "b.Fetch": []}, [], {"a.Fetch", "b.Fetch"})
    assert "| a.Fetch | 1 |" in text
    assert "| b.Fetch | 0 |" in text


def test_the_report_of_several_brokers_has_the_tests_that_request_them() -> None:
    text = document(of_several(CLASSIFIED), ["a.b.Fetch"], {"a.b.Fetch"}, several=True)
    assert text.startswith("# Apache Kafka's own tests, with several brokers")
    assert "1 tests in 1 classes" in text
    assert of_several({"a.b.Fetch": CLASSIFIED["a.b.Fetch"][:1]}) == {}


def test_a_summary_for_the_terminal() -> None:
    assert summary(count([PASSED, PASSED, NOT_COUNTED, FAILED])) == "1 failed, 2 passed"
    assert summary(count([])) == "no tests"
