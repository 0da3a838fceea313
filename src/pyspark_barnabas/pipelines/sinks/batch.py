"""A batch by its name."""

from typing import NamedTuple


class BatchName(NamedTuple):
    """Which batch of which query; a batch that comes again has the same name, and the same rows."""

    query_id: str  #: of the checkpoint
    number: int
