import json
import sys

import pytest

from barnabas.base.clock import ManualClock
from barnabas.telemetry import logs
from barnabas.telemetry.logs import MASK, configure, get_logger, levels, set_level

NOW_MS = 1_700_000_000_007
NOW = "2023-11-14T22:13:20.007Z"


@pytest.fixture(autouse=True)
def _fresh_settings(monkeypatch):
    monkeypatch.setattr(logs, "_settings", logs._Settings())


@pytest.fixture
def json_lines(capsys):
    configure("json", "debug", ManualClock(NOW_MS))

    def read():
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return read


def test_a_json_line_has_time_level_event_logger_and_fields(json_lines):
    get_logger("barnabas.log").info("segment rolled", topic="t", base_offset=7)
    assert json_lines() == [
        {
            "timestamp": NOW,
            "level": "info",
            "event": "segment rolled",
            "logger": "barnabas.log",
            "topic": "t",
            "base_offset": 7,
        }
    ]


def test_a_console_line_is_readable(capsys):
    configure("console", "info", ManualClock(NOW_MS))
    get_logger("barnabas.log").warning("disk is slow", directory="/data", took_ms=12)
    line = f"{NOW} [warning] disk is slow [barnabas.log] directory=/data took_ms=12\n"
    assert capsys.readouterr().err == line


def test_nothing_is_written_to_stdout(capsys):
    configure("console", "info")
    get_logger("a").info("hello")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("method", ["debug", "info", "warning", "error"])
def test_each_method_has_its_own_level(json_lines, method):
    getattr(get_logger("a"), method)("event")
    assert [line["level"] for line in json_lines()] == [method]


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("trace", ["debug", "info", "warning", "error", "error"]),
        ("DEBUG", ["debug", "info", "warning", "error", "error"]),
        ("info", ["info", "warning", "error", "error"]),
        ("WARN", ["warning", "error", "error"]),
        ("warning", ["warning", "error", "error"]),
        ("ERROR", ["error", "error"]),
        ("FATAL", []),
        ("critical", []),
    ],
)
def test_lines_below_the_level_are_omitted(json_lines, level, written):
    set_level("root", level)
    logger = get_logger("a")
    for method in (logger.debug, logger.info, logger.warning, logger.error, logger.exception):
        method("event")
    assert [line["level"] for line in json_lines()] == written


def test_an_exception_is_written_with_its_traceback(json_lines):
    try:
        raise KeyError("lost")
    except KeyError:
        get_logger("a").exception("it failed", attempt=3)
    (line,) = json_lines()
    assert (line["level"], line["attempt"]) == ("error", 3)
    assert line["exception"].startswith("Traceback (most recent call last):")
    assert line["exception"].endswith("KeyError: 'lost'")


def test_a_console_traceback_keeps_its_lines_and_has_no_local_variables(capsys):
    configure("console", "info")
    hidden = "hunter" + "2"
    try:
        raise KeyError(len(hidden))
    except KeyError:
        get_logger("a").exception("it failed")
    text = capsys.readouterr().err
    assert text.endswith("KeyError: 7\n")
    assert "\nTraceback (most recent call last):\n" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("key", ["password", "ssl.key.PASSWORD", "client_secret", "sasl.jaas.config"])
def test_values_of_secret_keys_are_masked(json_lines, key):
    get_logger("a").info("changed", **{key: "hunter2"})
    assert json_lines()[0][key] == MASK


def test_secrets_are_masked_inside_mappings_and_lists(json_lines):
    entries = [{"ssl.key.password": "hunter2", "retention.ms": 5}, {"nested": {"jaas": ("hunter2",)}}]
    get_logger("a").info("changed", entries=entries)
    assert json_lines()[0]["entries"] == [
        {"ssl.key.password": MASK, "retention.ms": 5},
        {"nested": {"jaas": MASK}},
    ]


@pytest.mark.parametrize("form", ["json", "console"])
def test_text_from_clients_cannot_start_a_line_or_control_the_terminal(capsys, form):
    configure(form, "info")
    get_logger("a").info("connected", client_id="x\n2023 [info] forged\x1b[31m")
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "\x1b" not in text


def test_a_value_that_is_not_json_is_written_as_text(json_lines):
    get_logger("a").info("event", error=ValueError("bad"))
    assert json_lines()[0]["error"] == "ValueError('bad')"


def test_before_configuration_warnings_are_console_lines(capsys):
    logger = get_logger("a")
    logger.info("quiet")
    logger.warning("loud")
    text = capsys.readouterr().err
    assert "loud" in text
    assert "quiet" not in text


def test_a_level_applies_to_child_loggers(json_lines):
    set_level("barnabas.log", "error")
    for name in ("barnabas.log", "barnabas.log.compaction.cleaner", "barnabas.logs", "barnabas"):
        get_logger(name).info("event")
    assert [line["logger"] for line in json_lines()] == ["barnabas.logs", "barnabas"]


def test_a_nearer_level_takes_precedence_in_any_order(json_lines):
    cleaner = get_logger("barnabas.log.compaction.cleaner")
    set_level("barnabas.log.compaction.cleaner", "debug")
    set_level("barnabas.log", "fatal")
    cleaner.debug("seen")
    assert [line["event"] for line in json_lines()] == ["seen"]


def test_a_level_changes_for_an_existing_logger(json_lines):
    logger = get_logger("a")
    set_level("a", "error")
    logger.info("hidden")
    set_level("a", "info")
    logger.info("seen")
    assert [line["event"] for line in json_lines()] == ["seen"]


def test_levels_lists_every_logger_and_the_root_by_kafkas_names():
    configure("json", "warning")
    get_logger("a.b")
    set_level("a", "debug")
    set_level("c", "critical")
    assert levels() == {"a": "DEBUG", "a.b": "DEBUG", "c": "FATAL", "root": "WARN"}


def test_loggers_are_cached_by_name():
    assert get_logger("a") is get_logger("a")


def test_an_unknown_level_is_rejected_with_the_valid_ones():
    with pytest.raises(
        ValueError, match=r"log level 'LOUD' is unknown: valid are TRACE, DEBUG, INFO, WARN, ERR"
    ):
        set_level("a", "LOUD")
    assert "a" not in levels()


def test_an_unknown_format_is_rejected_with_the_valid_ones():
    with pytest.raises(ValueError, match="log format 'xml' is unknown: valid are console, json"):
        configure("xml", "info")


def test_format_and_level_are_case_insensitive(capsys):
    configure("JSON", "Info")
    get_logger("a").info("hello")
    assert json.loads(capsys.readouterr().err)["event"] == "hello"


@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("I/O operation on closed file")])
def test_a_closed_stderr_does_not_stop_the_broker(monkeypatch, error):
    stream = GoneStream(error)
    monkeypatch.setattr(sys, "stderr", stream)
    get_logger("a").error("nobody reads this")
    assert stream.attempts_count == 1


class GoneStream:
    def __init__(self, error):
        self.error = error
        self.attempts_count = 0

    def isatty(self):
        return False

    def write(self, text):
        self.attempts_count += 1
        raise self.error
