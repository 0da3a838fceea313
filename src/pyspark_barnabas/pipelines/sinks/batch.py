"""A batch by its name, and a path as Spark takes it."""

from pathlib import Path
from typing import NamedTuple


class BatchName(NamedTuple):
    """Which batch of which query; a batch that comes again has the same name, and the same rows."""

    query_id: str  #: of the checkpoint
    number: int


def uri(path: Path) -> str:
    """A path of this machine for Spark, which takes names as they are: nothing in it is escaped."""
    return f"file:{path}"
