"""The log of a broker process: one format from the first line to the last."""

import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from barnabas.config.definition import ConfigError
from barnabas.config.load import environment_name, read_properties
from barnabas.telemetry.logs import FORMATS, configure, get_logger
from barnabas.telemetry.standard_logs import standard_logs_captured

FORMAT_KEY = "barnabas.log.format"
_JSON = "json"

_log = get_logger("barnabas.server")


class ProcessLog:
    """Writes messages about the process: plain text, or log lines in the JSON format."""

    def __init__(self, log_format: str) -> None:
        self.is_json = log_format == _JSON

    @classmethod
    def early(
        cls, overrides: Mapping[str, str], environment: Mapping[str, str], config_file: Path | None
    ) -> "ProcessLog":
        """Determine the format before the configuration is checked, so that its errors have it, too."""
        file: Mapping[str, str] = {}
        with suppress(ConfigError):  # it is reported when the configuration is loaded
            file = read_properties(config_file) if config_file else {}
        texts = (
            overrides.get(FORMAT_KEY),
            environment.get(environment_name(FORMAT_KEY)),
            file.get(FORMAT_KEY),
        )
        log_format = next((text for text in texts if text is not None), "").strip().lower()
        if log_format in FORMATS:
            configure(log_format, "info")
        return cls(log_format)

    def warn(self, text: str) -> None:
        """Print a warning about the configuration."""
        if self.is_json:
            _log.warning(text)
        else:
            print(f"barnabas: warning: {text}", file=sys.stderr)

    def cannot_start(self, text: str) -> None:
        """Print why the broker does not start."""
        if self.is_json:
            _log.error("the broker cannot start", why=text)
        else:
            print(f"barnabas: {text}", file=sys.stderr)


@contextmanager
def everything_logged() -> Iterator[None]:
    """Send Python's logging, warnings and uncaught exceptions to the broker's log within the block."""
    before = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = _log_uncaught, _log_uncaught_in_thread
    logging.captureWarnings(True)
    try:
        with standard_logs_captured():
            yield
    finally:
        logging.captureWarnings(False)
        sys.excepthook, threading.excepthook = before


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    logging.getLogger("barnabas").error("uncaught exception", exc_info=(kind, error, traceback))


def _log_uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        _log_uncaught(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
