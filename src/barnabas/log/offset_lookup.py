"""Offsets by timestamp (ListOffsets).

Searches yield batches that have to be decompressed; see `timestamps`. Do not continue one after the log is closed.
"""

from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments import timestamps
from barnabas.log.segments.timestamps import Search, TimestampOffset
from barnabas.wire.records.batch import NO_LEADER_EPOCH, NO_TIMESTAMP


def search_timestamp(log: PartitionLog, timestamp_ms: int) -> Search:
    """Search the first record at or after `timestamp_ms`.

    :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damaged files.
    """
    return _guarded(log, timestamps.first_at_or_after(log.segments, timestamp_ms, log.log_start_offset))


def search_max_timestamp(log: PartitionLog) -> Search:
    """Search the first record with the largest timestamp, including deleted records that are still in a segment.

    The result is None for an empty log.

    :raises KafkaError: As `search_timestamp`.
    """
    return _guarded(log, timestamps.of_max_timestamp(log.segments))


def _guarded(log: PartitionLog, search: Search) -> Search:
    if log.failure is not None:
        raise log.local.offline_error()
    try:
        return (yield from search)
    except OSError as error:
        raise log.local.failed_read(error) from error


def earliest_offset(log: PartitionLog) -> TimestampOffset:
    """Return the log start offset, with the epoch of the leader that wrote there."""
    epoch = log.epochs.epoch_at(log.log_start_offset)
    return TimestampOffset(NO_TIMESTAMP, log.log_start_offset, NO_LEADER_EPOCH if epoch is None else epoch)
