"""What a fetch asks for and what it gets, partition by partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode

NO_OFFSET = -1

_NOTHING_SENT = -1

Key = tuple[str | bytes, int]  #: topic name, or id where the client speaks ids; partition


class EndOfEpoch(NamedTuple):
    """The largest leader epoch that a log has in common with a reader, and where it ends (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(slots=True)
class FetchedPartition:
    """The result of one partition: records, or an error code; offsets that are not known are `NO_OFFSET`."""

    partition_index: int
    error_code: int = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    records: Buffer = b""
    diverging_epoch: EndOfEpoch | None = None


@dataclass(slots=True)
class FetchTarget:
    """One partition as a fetch asks for it, and what was last sent of it within a session."""

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
        """Ask for what `other` asks for from now on."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.leader_epoch = other.leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch

    def record_sent(self, data: FetchedPartition) -> bool:
        """Remember what is sent to the client; return False if the client knows all of it already."""
        news = bool(
            data.records
            or data.error_code
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
            or data.diverging_epoch is not None
        )
        self.sent_high_watermark = data.high_watermark
        self.sent_log_start_offset = data.log_start_offset
        return news


class FetchData(NamedTuple):
    """What a Fetch request says."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    named: Sequence[tuple[Key, FetchTarget]]
    forgotten: Sequence[Key]
    is_follower: bool = False
