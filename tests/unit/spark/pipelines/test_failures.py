"""Errors of Spark in one line for people."""

from pyspark_barnabas.pipelines.failures import FlowError, one_line_error


def test_what_is_said_for_people_stays_whole() -> None:
    assert one_line_error(FlowError("a:1: b\nc")) == "a:1: b\nc"


def test_the_plan_behind_an_error_is_left_out() -> None:
    assert (
        one_line_error(ValueError("[UNRESOLVED_COLUMN] no such column\n'Project ['x]"))
        == "[UNRESOLVED_COLUMN] no such column"
    )


def test_what_java_failed_with_is_told_rather_than_what_was_called() -> None:
    text = "An error occurred while calling o1.count.\n: org.apache.spark.SparkException: why\n\tat a.b.c"
    assert one_line_error(RuntimeError(text)) == "org.apache.spark.SparkException: why"


def test_of_a_traceback_it_is_told_what_was_raised() -> None:
    text = (
        "[STREAM_FAILED] it ended: Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n    g()\nbarnabas.KafkaError: no such topic\n\n\tat java'
    )
    assert one_line_error(RuntimeError(text)) == "barnabas.KafkaError: no such topic"


def test_an_error_that_says_nothing_is_named() -> None:
    assert one_line_error(KeyError()) == "KeyError"
