"""Errors that Spark shows without a traceback, because their message says all that a user needs to know."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.reading.data_loss import DataLossError
from barnabas.reading.option_values import OptionError
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.sink.errors import SinkError

#: If it is set, PySpark sends only the type and the message of an error from a worker to the JVM.
_HIDES_TRACEBACK = "SPARK_HIDE_TRACEBACK"

#: Invalid options and rows, errors of brokers, brokers that cannot be reached, records that are gone.
EXPECTED = (OptionError, SinkError, KafkaError, ConnectionError, DataLossError)


class BarnabasError(Exception):
    """An error with a message for users. It must not be logged or printed before Spark does.

    PySpark reads the environment when a worker has failed, and then the message. The constructor sets the variable, and
    `__str__` removes it, because the worker runs other code afterwards. So call `str` only once.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._hides_traceback = _HIDES_TRACEBACK not in os.environ
        if self._hides_traceback:
            os.environ[_HIDES_TRACEBACK] = "1"

    def __str__(self) -> str:
        if self._hides_traceback:
            os.environ.pop(_HIDES_TRACEBACK, None)
        return str(self.args[0])


#: As Spark shows it.
BarnabasError.__module__ = "pyspark_barnabas"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise expected errors as `BarnabasError`."""
    try:
        yield
    except EXPECTED as error:
        raise BarnabasError(str(error)) from None
