import sys

import pytest

from barnabas.cli.support import output
from barnabas.cli.support.progress import progress


class Terminal:
    """Makes a stream look like a terminal."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    lines = output.plain_lines(("name", "n"), [("x" * 300, 1), ("y", 22)])
    assert lines == ["name".ljust(300) + "  n", "x" * 300 + "  1", "y".ljust(300) + "  22"]


def test_an_empty_table_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("a", "b"), [])
    assert capsys.readouterr().out == "a  b\n"


def test_a_terminal_gets_a_table_without_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.sys, "stdout", Terminal(output.sys.stdout))
    output.print_table(("name", "n"), [("[red]x", 1)])
    printed = capsys.readouterr().out
    assert "[red]x" in printed
    assert "│" in printed


WIDE = ("revision", "time", "who", "by", "outcome", "resource", "key", "before", "after")
EVENT = (
    57,
    "2026-01-31 09:30:00+01:00",
    "User:alice at 10.0.0.7",
    "CreateTopics",
    "changed",
    "topic/orders",
    "",
    "-",
    1,
)


@pytest.mark.parametrize(
    ("columns", "row", "width", "readable"),
    [
        (("topic", "partitions"), ("orders", 3), 80, True),
        (("topic", "value"), ("orders", "x" * 500), 80, True),
        (WIDE, EVENT, 80, False),
        (WIDE, EVENT, 200, True),
    ],
)
def test_at_most_one_column_of_a_table_is_folded(
    columns: tuple[str, ...], row: tuple[object, ...], width: int, readable: bool
) -> None:
    assert output.fits(columns, [row], width) == readable
    assert output.fits(columns, [], 200)


def test_a_row_that_is_too_wide_is_printed_as_a_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.sys, "stdout", Terminal(output.sys.stdout))
    monkeypatch.setenv("COLUMNS", "80")
    output.print_table(WIDE, [EVENT, EVENT], "Events")
    title, *lines = capsys.readouterr().out.splitlines()
    assert (title, lines[2]) == ("Events", "who       User:alice at 10.0.0.7")
    assert lines[:8] == lines[9:]
    assert not any(line.startswith("key") for line in lines)


def test_notices_are_printed_on_terminals_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.notice("done")
    monkeypatch.setattr(output.sys, "stderr", Terminal(output.sys.stderr))
    output.notice("done twice")
    assert capsys.readouterr().err == "done twice\n"


@pytest.mark.parametrize(("in_bytes", "expected"), [(False, "300/300"), (True, "300/300 bytes")])
def test_progress_is_shown_on_terminals_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, in_bytes: bool, expected: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for is_terminal, total in ((False, 300), (True, 0), (True, 300)):
        if is_terminal:
            monkeypatch.setattr(sys, "stderr", Terminal(sys.stderr))
        with progress(total, in_bytes=in_bytes) as advance:
            advance(100)
            advance(200)
        shown = capsys.readouterr().err
        assert (expected in shown) == bool(is_terminal and total), shown
