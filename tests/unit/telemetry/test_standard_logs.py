import asyncio
import json
import logging

import pytest

from barnabas.telemetry import logs
from barnabas.telemetry.standard_logs import StandardLogHandler, standard_logs_captured


@pytest.fixture(autouse=True)
def captured(monkeypatch):
    monkeypatch.setattr(logs, "_settings", logs._Settings())
    with standard_logs_captured():
        yield
    assert not [each for each in logging.getLogger().handlers if isinstance(each, StandardLogHandler)]


@pytest.fixture
def lines(capsys):
    logs.configure("json", "info")
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (logging.CRITICAL, "error"),
        (logging.ERROR, "error"),
        (logging.WARNING, "warning"),
        (logging.INFO, "info"),
    ],
)
def test_a_librarys_line_has_our_format(lines, level, expected):
    library = logging.getLogger("library.part")
    library.setLevel(logging.INFO)
    library.log(level, "%s of %d", "one", 2)
    (line,) = lines()
    assert (line["logger"], line["level"], line["event"]) == ("library.part", expected, "one of 2")


def test_a_librarys_exception_keeps_its_traceback(lines):
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger("library").exception("it failed")
    (line,) = lines()
    assert line["event"] == "it failed"
    assert line["exception"].endswith("KeyError: 'lost'")


def test_a_configured_level_applies_to_a_librarys_lines(lines):
    logs.set_level("library", "error")
    logging.getLogger("library").warning("left out")
    assert lines() == []


@pytest.mark.parametrize(
    ("text", "arguments"), [("no place", (5,)), ("%d", ("x",)), ("%(name)s", ({"a": 1},))]
)
def test_arguments_that_do_not_fit_their_message_are_appended(lines, text, arguments):
    record = logging.LogRecord("library", logging.ERROR, __file__, 1, text, arguments, None)
    StandardLogHandler().emit(record)
    assert [line["event"] for line in lines()] == [f"{text} {record.args}"]


def test_an_unhandled_exception_in_the_event_loop_is_one_structured_line(lines):
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())
    (line,) = lines()
    assert (line["logger"], line["level"]) == ("asyncio", "error")
    assert "ZeroDivisionError" in line["exception"]
