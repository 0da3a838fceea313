"""Lines that libraries write with Python's own logging (asyncio, OpenTelemetry) join the broker's."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.telemetry.logs import get_logger


class StandardLogHandler(logging.Handler):
    """Hands the records of Python's logging to the logger of the same name."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as a structured line."""
        fields: dict[str, object] = {}
        if record.exc_info and record.exc_info[1]:
            fields["exception"] = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        logger = get_logger(record.name)
        if record.levelno >= logging.ERROR:
            logger.error(_message(record), **fields)
        elif record.levelno >= logging.WARNING:
            logger.warning(_message(record), **fields)
        else:
            logger.info(_message(record), **fields)


@contextmanager
def standard_logs_captured() -> Iterator[None]:
    """Send what Python's logging gets to the broker's lines; for a process that is a broker and no more."""
    handler = StandardLogHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args}"  # arguments that do not fit: better odd than lost
