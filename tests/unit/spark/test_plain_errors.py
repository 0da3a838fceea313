"""Errors that Spark shows without a traceback, as PySpark handles them in a worker."""

import io
import os

import pytest
from pyspark.util import handle_worker_exception

from barnabas.reading.option_values import OptionError
from barnabas.wire.errors import ErrorCode, KafkaError
from pyspark_barnabas.plain_errors import BarnabasError, plain_errors

EXPECTED = [
    KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic 't'"),
    OptionError("no"),
    ConnectionError("no"),
]


def handled(error: BaseException) -> str:
    """Return what PySpark sends to the JVM."""
    sent = io.BytesIO()
    try:
        raise error
    except BaseException as raised:
        handle_worker_exception(raised, sent)
    return sent.getvalue()[8:].decode()


def converted(error: Exception) -> Exception:
    try:
        with plain_errors():
            raise error
    except Exception as raised:
        return raised


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: type(error).__name__)
def test_only_the_message_of_an_expected_error_is_sent(error: Exception) -> None:
    message = str(error)
    assert handled(converted(error)) == f"pyspark_barnabas.BarnabasError: {message}\n"


def test_later_errors_of_the_same_worker_have_their_traceback() -> None:
    handled(converted(EXPECTED[0]))
    assert "Traceback" in handled(ValueError("mine"))


def test_other_errors_are_left_alone() -> None:
    error = ZeroDivisionError("ours")
    assert converted(error) is error


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "1")
    str(BarnabasError("x"))
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"
