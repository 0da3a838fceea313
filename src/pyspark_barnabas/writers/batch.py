"""The identity of a batch."""

from typing import NamedTuple


class BatchName(NamedTuple):
    """A query and a batch number; a repeated batch has the same name and the same rows."""

    query_id: str  #: of the checkpoint
    number: int
