"""The result of an append."""

from typing import NamedTuple

from barnabas.log.producers.producer_state_manager import BatchMetadata


class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    #: -1 unless the topic uses LogAppendTime.
    log_append_time_ms: int
    log_start_offset: int
    #: Whether the batch repeats an earlier one: nothing was appended, and the offsets are those of the first append.
    duplicate: bool
    size_bytes: int


def duplicate_info(batch: BatchMetadata, log_start_offset: int) -> AppendInfo:
    """Return the result for a duplicate of `batch`."""
    return AppendInfo(batch.first_offset, batch.last_offset, batch.timestamp_ms, log_start_offset, True, 0)
