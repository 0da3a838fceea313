"""Requested partitions and results of a fetch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode

NO_OFFSET = -1
NO_REPLICA = -1

#: Partitions that are read, or written to the response, before other clients are served.
READ_PARTITIONS_MAX = 500

_NOTHING_SENT = -1

Key = tuple[str | bytes, int]  #: topic name, or topic id if the request uses ids; partition index


class EndOfEpoch(NamedTuple):
    """The largest leader epoch that a log has in common with a reader, and its end offset (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(slots=True)
class FetchedPartition:
    """The result of one partition: records, or an error code; unknown offsets are `NO_OFFSET`."""

    partition_index: int
    error_code: int = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    records: Buffer = b""
    diverging_epoch: EndOfEpoch | None = None
    leader_hint: tuple[int, int] | None = None  #: leader and leader epoch, with some errors (KIP-951)
    preferred_read_replica: int = NO_REPLICA  #: the broker that the consumer should fetch from (KIP-392)


@dataclass(slots=True)
class FetchTarget:
    """One requested partition, and the values last sent for it within a session."""

    topic: str
    topic_id: bytes
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    by_id: bool
    sent_high_watermark: int = _NOTHING_SENT
    sent_log_start_offset: int = _NOTHING_SENT

    def update(self, other: "FetchTarget") -> None:
        """Use the request parameters of `other` from now on."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.leader_epoch = other.leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch

    def record_sent(self, data: FetchedPartition) -> bool:
        """Store what is sent to the client; return False if the client has all of it already."""
        has_news = bool(
            data.records
            or data.error_code
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
            or data.diverging_epoch is not None
            or data.preferred_read_replica != NO_REPLICA
        )
        self.sent_high_watermark = data.high_watermark
        self.sent_log_start_offset = data.log_start_offset
        return has_news


class FetchData(NamedTuple):
    """The parameters of a Fetch request."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    requested: Sequence[tuple[Key, FetchTarget]]
    forgotten: Sequence[Key]
    #: As in a follower's Fetch. Followers of this cluster, however, use `api/data/replica_fetch.py`.
    has_replica_id: bool = False
    rack: str = ""
