"""Paths on this machine or on a disk shared with all workers, in the forms that Spark and delta-rs accept."""

import re
from pathlib import Path

#: Pattern characters in paths that Spark reads; in paths that it writes they have no special meaning.
_PATTERN = re.compile(r"[{}\[\]*?\\]")
_NOT_OF_TABLES = re.compile(r"[\[\]]|%[0-9A-Fa-f]{2}")


class PathError(ValueError):
    """A path that Spark cannot read."""


def uri(path: Path) -> str:
    """Return the path as a URI for Spark, which expects names without escaping."""
    return f"file:{path.absolute()}"


def pattern_of(path: Path, below: str = "") -> str:
    """Return the pattern for Spark's readers that matches this path only, followed by the pattern `below`.

    Unescaped, a path with braces, brackets, stars or question marks would match nothing or too much.

    :raises PathError: The path has a colon and the result is a pattern: Hadoop cannot read that.
    """
    text = uri(path)
    pattern = _PATTERN.sub(r"\\\g<0>", text) + below
    if ":" in str(path.absolute()) and pattern != text:
        raise PathError(
            f"{path}: Spark cannot read a path with a colon that also has one of {{}}[]*?\\, nor database tables "
            "below it; rename the directory"
        )
    return pattern


def table_flaw(path: Path) -> str | None:
    """Return why this cannot be a Delta table's directory (delta-rs converts it to a URL and fails), or None."""
    if not _NOT_OF_TABLES.search(str(path.absolute())):
        return None
    return "the path of a Delta table must not contain square brackets or % before two hex digits"
