"""Results on stdout: tables on terminals, plain columns in pipes, JSON for programs."""

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

Row = Sequence[object]

#: Least width in characters that the widest column may be folded to; in less space, rows are printed as lists of cells.
_FOLDED_WIDTH_MIN = 24
#: Width of the borders per cell; a table has one more character.
_BORDER_WIDTH = 3


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Row], title: str = "") -> None:
    """Print a table on a terminal, or lists of cells if it would be too wide; else plain columns, never truncated."""
    if not sys.stdout.isatty():
        print("\n".join(plain_lines(columns, rows)))
    elif fits(columns, rows, shutil.get_terminal_size().columns):
        _print_rich(columns, rows, title)
    else:
        print("\n".join([*([title] if title else []), *listed_lines(columns, rows)]))


def fits(columns: Sequence[str], rows: Sequence[Row], width: int) -> bool:
    """Whether a table is readable in this many characters: whole, or with one column folded."""
    widths = _widths(columns, rows)
    others = sum(widths) - max(widths) + _BORDER_WIDTH * len(columns) + 1
    return others + min(max(widths), _FOLDED_WIDTH_MIN) <= width


def listed_lines(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return a line per cell that is not empty, with an empty line between rows."""
    name_width = max(map(len, columns))
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        lines += [
            f"{name.ljust(name_width)}  {cell}" for name, cell in zip(columns, row, strict=True) if cell != ""
        ]
    return lines


def plain_lines(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return a header line and a line per row, aligned by spaces."""
    texts = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = _widths(columns, rows)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in texts
    ]


def _widths(columns: Sequence[str], rows: Sequence[Row]) -> list[int]:
    return [max(len(name), *(len(str(row[index])) for row in rows), 0) for index, name in enumerate(columns)]


def notice(text: str) -> None:
    """Print a note to stderr, only on a terminal."""
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
