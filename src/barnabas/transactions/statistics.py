"""Statistics and counters of transactions."""

from dataclasses import dataclass
from typing import TypedDict


@dataclass(slots=True)
class TransactionCounts:
    """Counters of a broker's transactional ids; they outlive the shards."""

    timed_out_count: int = 0  #: transactions that are aborted because of their timeout
    expired_ids_count: int = 0


class TransactionStatistics(TypedDict):
    """A shard of transactional ids."""

    transactional_ids_count: int
    transactional_ids: dict[str, int]  #: by state
