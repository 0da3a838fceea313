"""Structured log lines on stderr, with levels that can be changed at runtime.

Loggers have dotted names; a level applies to a logger and to all loggers below it without a level of
their own. Level names are Kafka's (BROKER_LOGGER, KIP-412).
"""

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from barnabas.base.clock import Clock, SystemClock

LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
_LEVEL_NAMES = {value: name for name, value in LEVELS.items()}
_SYNONYMS = {"WARNING": "WARN", "CRITICAL": "FATAL"}
ROOT = "root"
FORMATS = ("console", "json")

_SECRET_WORDS = ("password", "secret", "jaas")
MASK = "[hidden]"


class Logger:
    """Writes the lines of one name. Get it from `get_logger`."""

    def __init__(self, name: str, level: int) -> None:
        self.name = name
        self.level = level  #: lines below it are dropped; updated by `set_level`

    @property
    def is_debug_enabled(self) -> bool:
        """Whether `debug` writes anything; check it before computing costly fields."""
        return self.level <= LEVELS["DEBUG"]

    def debug(self, event: str, **fields: object) -> None:
        """Log an event for developers."""
        if self.level <= LEVELS["DEBUG"]:
            _write(self.name, "debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log an event of normal operation."""
        if self.level <= LEVELS["INFO"]:
            _write(self.name, "info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that operators should check at some time."""
        if self.level <= LEVELS["WARN"]:
            _write(self.name, "warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log an event that operators should check immediately."""
        if self.level <= LEVELS["ERROR"]:
            _write(self.name, "error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Log an error with the traceback of the current exception."""
        if self.level <= LEVELS["ERROR"]:
            _write(self.name, "error", event, {**fields, "exception": traceback.format_exc().rstrip()})


class _Settings:
    """State of `configure` and `set_level`; one per process, like stderr."""

    def __init__(self) -> None:
        self.format = "console"
        self.clock: Clock = SystemClock()
        self.loggers: dict[str, Logger] = {}
        self.levels = {ROOT: LEVELS["WARN"]}  #: explicit levels by logger; always has ROOT


_settings = _Settings()


def configure(format: str, level: str, clock: Clock | None = None) -> None:  # noqa: A002 - the config's name
    """Choose the format ("console" or "json") and the root level.

    Until then lines of WARN and above are written as plain text: a broker inside a test is quiet.

    :raises ValueError: For an unknown format or level.
    """
    if format.lower() not in FORMATS:
        text = f"log format {format!r} is unknown: valid are {', '.join(FORMATS)}"
        raise ValueError(text)
    set_level(ROOT, level)
    _settings.format = format.lower()
    _settings.clock = clock or SystemClock()


def get_logger(name: str) -> Logger:
    """Return the logger of a dotted name, such as "barnabas.log.compaction.cleaner"."""
    logger = _settings.loggers.get(name)
    if logger is None:
        logger = _settings.loggers[name] = Logger(name, _effective_level(name))
    return logger


def set_level(name: str, level: str) -> None:
    """Set the level of the logger `name` and those below it; "root" is above all.

    :raises ValueError: For an unknown level.
    """
    _settings.levels[name] = parse_level(level)
    _update_loggers()


def clear_level(name: str) -> None:
    """Remove the level of the logger `name`; it inherits again."""
    assert name != ROOT, "the level of the root logger cannot be removed"
    _settings.levels.pop(name, None)
    _update_loggers()


def _update_loggers() -> None:
    for logger in _settings.loggers.values():
        logger.level = _effective_level(logger.name)


def levels() -> dict[str, str]:
    """Return the effective level of each logger by name; "root" included."""
    names = sorted({*_settings.loggers, *_settings.levels})
    return {name: _LEVEL_NAMES[_effective_level(name)] for name in names}


def parse_level(level: str) -> int:
    """Return the numeric level of a name of Kafka or Python, in any case.

    :raises ValueError: For an unknown level.
    """
    name = level.upper()
    weight = LEVELS.get(_SYNONYMS.get(name, name))
    if weight is None:
        text = f"log level {level!r} is unknown: valid are {', '.join(LEVELS)}"
        raise ValueError(text)
    return weight


def masked(key: str, value: object) -> object:
    """Return `value`, or a mask if the key is secret; recurses into mappings and lists."""
    if any(word in key.lower() for word in _SECRET_WORDS):
        return MASK
    if isinstance(value, Mapping):
        return {str(inner): masked(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(key, item) for item in value]
    return value


def _effective_level(name: str) -> int:
    while name:
        if name in _settings.levels:
            return _settings.levels[name]
        name = name.rpartition(".")[0]
    return _settings.levels[ROOT]


def _write(name: str, level: str, event: str, fields: dict[str, object]) -> None:
    line: dict[str, object] = {
        "timestamp": _iso_8601(_settings.clock.wall_ms()),
        "level": level,
        "event": event,
        "logger": name,
    }
    for key, value in fields.items():
        line[key] = masked(key, value)
    _write_text(_RENDERERS[_settings.format](line) + "\n")


def _write_text(text: str) -> None:
    # If stderr is closed the line is lost and the broker continues.
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _iso_8601(wall_ms: int) -> str:
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{wall_ms % 1000:03d}Z"


def _render_json(line: dict[str, object]) -> str:
    return json.dumps(line, default=repr, ensure_ascii=False)


def _render_console(line: dict[str, object]) -> str:
    """Render time, level and event, then `key=value`; a traceback follows on separate lines."""
    printable = {key: _printable(key, value) for key, value in line.items()}
    exception = printable.pop("exception", None)
    timestamp, level, event, logger = (
        printable.pop(key) for key in ("timestamp", "level", "event", "logger")
    )
    start = f"{timestamp} [{level}] {event} [{logger}]"
    fields = "".join(f" {key}={_quoted(value)}" for key, value in printable.items())
    return f"{start}{fields}" if exception is None else f"{start}{fields}\n{exception}"


def _quoted(value: object) -> str:
    text = str(value)
    return repr(text) if not text or " " in text or "=" in text else text


def _printable(key: str, value: object) -> object:
    """Escape control characters, which clients could use to control a terminal."""
    if key == "exception" or not isinstance(value, str) or value.isprintable():
        return value
    return value.encode("unicode_escape").decode("ascii")


_RENDERERS: Mapping[str, Callable[[dict[str, object]], str]] = {
    "console": _render_console,
    "json": _render_json,
}
