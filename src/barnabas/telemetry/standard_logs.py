"""Adds the lines of Python's own logging (asyncio, OpenTelemetry) to the broker's log."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.telemetry.logs import get_logger


class StandardLogHandler(logging.Handler):
    """Passes the records of Python's logging to the logger of the same name."""

    def emit(self, record: logging.LogRecord) -> None:
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
    """Send Python's logging to the broker's log; for a process that is only a broker."""
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
        return f"{record.msg} {record.args}"  # arguments do not fit: print them unformatted
