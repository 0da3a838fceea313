"""Transactions in numbers: what there is, and what has happened."""

from dataclasses import dataclass
from typing import TypedDict


@dataclass(slots=True)
class TransactionCounts:
    """What has happened to the transactional ids of a broker since it started; it outlives the shards."""

    timed_out_count: int = 0  #: transactions that were open for too long and are aborted
    expired_ids_count: int = 0


class TransactionStatistics(TypedDict):
    """A shard of transactional ids."""

    transactional_ids_count: int
    transactional_ids: dict[str, int]  #: by state
