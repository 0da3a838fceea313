"""Spark's errors as one line."""

from pyspark_barnabas.failures import FlowError, one_line_error


def test_a_plain_message_is_unchanged() -> None:
    assert one_line_error(FlowError("a:1: b\nc")) == "a:1: b\nc"


def test_the_query_plan_after_an_error_is_omitted() -> None:
    assert (
        one_line_error(ValueError("[UNRESOLVED_COLUMN] no such column\n'Project ['x]"))
        == "[UNRESOLVED_COLUMN] no such column"
    )


def test_the_java_error_is_shown_instead_of_the_call() -> None:
    text = "An error occurred while calling o1.count.\n: org.apache.spark.SparkException: why\n\tat a.b.c"
    assert one_line_error(RuntimeError(text)) == "org.apache.spark.SparkException: why"


def test_the_exception_of_a_traceback_is_shown() -> None:
    text = (
        "[STREAM_FAILED] it ended: Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n    g()\nbarnabas.KafkaError: no such topic\n\n\tat java'
    )
    assert one_line_error(RuntimeError(text)) == "barnabas.KafkaError: no such topic"


def test_an_error_without_message_is_shown_by_type() -> None:
    assert one_line_error(KeyError()) == "KeyError"
