"""Results on stdout: tables for people, plain columns for pipes, JSON for programs."""

import json
import sys
from collections.abc import Sequence
from typing import Any

Row = Sequence[object]


def print_json(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Row], title: str = "") -> None:
    """A Rich table on a terminal; else columns that nothing is cut from."""
    if sys.stdout.isatty():
        _print_rich(columns, rows, title)
    else:
        print("\n".join(plain_lines(columns, rows)))


def plain_lines(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """A header line and a line per row, aligned by spaces."""
    texts = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[index]) for line in texts) for index in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in texts
    ]


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
