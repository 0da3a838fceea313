"""Paths of this machine, or of a disk that all workers see, as Spark and delta-rs take them."""

import re
from pathlib import Path

#: What is a pattern in the paths that Spark reads, and not in those that it writes.
_PATTERN = re.compile(r"[{}\[\]*?\\]")
_NOT_OF_TABLES = re.compile(r"[\[\]]|%[0-9A-Fa-f]{2}")


class PathError(ValueError):
    """A path that Spark cannot read."""


def uri(path: Path) -> str:
    """Return the path for Spark, which takes names as they are: nothing in it is escaped."""
    return f"file:{path.absolute()}"


def pattern_of(path: Path, below: str = "") -> str:
    """Return the pattern for Spark's readers that fits this path alone, with the pattern `below` behind it.

    A path with braces, brackets, stars or question marks would be another pattern, which fits nothing or too much.

    :raises PathError: When there is a pattern to be read, and a colon in the path: Hadoop cannot read that.
    """
    text = uri(path)
    pattern = _PATTERN.sub(r"\\\g<0>", text) + below
    if ":" in str(path.absolute()) and pattern != text:
        raise PathError(
            f"{path}: Spark cannot read a path with a colon that also has one of {{}}[]*?\\, nor tables of databases "
            "below it; give the directory another name"
        )
    return pattern


def table_flaw(path: Path) -> str | None:
    """Why this cannot be a Delta table's directory: delta-rs makes a URL of it, and fails with some characters."""
    if not _NOT_OF_TABLES.search(str(path.absolute())):
        return None
    return "the path of a Delta table cannot have square brackets, nor % before two hex digits"
