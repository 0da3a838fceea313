"""Results on stdout: tables for people, plain columns for pipes, JSON for programs."""

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

Row = Sequence[object]

#: To how few characters the widest column of a table may be folded; below, rows are lists of their cells.
_FOLDED_WIDTH_MIN = 24
#: What a table has around each of its cells, and once.
_BORDER_WIDTH = 3


def print_json(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Row], title: str = "") -> None:
    """On a terminal a table, or lists of cells where that would be too wide; else columns that nothing is cut from."""
    if not sys.stdout.isatty():
        print("\n".join(plain_lines(columns, rows)))
    elif fits(columns, rows, shutil.get_terminal_size().columns):
        _print_rich(columns, rows, title)
    else:
        print("\n".join([*([title] if title else []), *listed_lines(columns, rows)]))


def fits(columns: Sequence[str], rows: Sequence[Row], width: int) -> bool:
    """Whether a table can be read on so many characters: whole, or with one of its columns folded."""
    widths = _widths(columns, rows)
    others = sum(widths) - max(widths) + _BORDER_WIDTH * len(columns) + 1
    return others + min(max(widths), _FOLDED_WIDTH_MIN) <= width


def listed_lines(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """A line per cell that holds something, and an empty one between rows."""
    name_width = max(map(len, columns))
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        lines += [
            f"{name.ljust(name_width)}  {cell}" for name, cell in zip(columns, row, strict=True) if cell != ""
        ]
    return lines


def plain_lines(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """A header line and a line per row, aligned by spaces."""
    texts = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = _widths(columns, rows)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in texts
    ]


def _widths(columns: Sequence[str], rows: Sequence[Row]) -> list[int]:
    return [max(len(name), *(len(str(row[index])) for row in rows), 0) for index, name in enumerate(columns)]


def notice(text: str) -> None:
    """A word for people, on stderr and only on a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def _print_rich(columns: Sequence[str], rows: Sequence[Row], title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)
