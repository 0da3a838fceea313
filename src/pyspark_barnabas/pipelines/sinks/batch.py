"""A batch by its name, and a path as Spark takes it."""

import re
from pathlib import Path
from typing import NamedTuple

from pyspark_barnabas.pipelines.failures import FlowError

#: What is a pattern in the paths that Spark reads, and not in those that it writes.
_PATTERN = re.compile(r"[{}\[\]*?\\]")


class BatchName(NamedTuple):
    """Which batch of which query; a batch that comes again has the same name, and the same rows."""

    query_id: str  #: of the checkpoint
    number: int


def uri(path: Path) -> str:
    """A path of this machine for Spark, which takes names as they are: nothing in it is escaped."""
    return f"file:{path}"


def pattern_of(path: Path, below: str = "") -> str:
    """Return the pattern for Spark's readers that fits this path alone, with the pattern `below` behind it.

    A path with braces, brackets, stars or question marks would be another pattern, which fits nothing or too much.

    :raises FlowError: When there is a pattern to be read, and a colon in the path: Hadoop cannot read that.
    """
    pattern = _PATTERN.sub(r"\\\g<0>", str(path)) + below
    if ":" in str(path) and pattern != str(path):
        raise FlowError(
            f"{path}: Spark cannot read a path with a colon that also has one of {{}}[]*?\\, nor tables of databases "
            "below it; give the directory another name"
        )
    return f"file:{pattern}"
