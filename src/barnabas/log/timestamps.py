"""Finding offsets by time (ListOffsets): time index, then offset index, then the records of one batch."""

from typing import NamedTuple

from barnabas.log.segment import Segment
from barnabas.log.segments import Segments
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader
from barnabas.wire.records.record import decode_batch


class TimestampOffset(NamedTuple):
    """A record's timestamp, offset and the epoch of the leader that wrote it (-1 when unknown)."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Segments, timestamp_ms: int, log_start_offset: int) -> TimestampOffset | None:
    """The first record with `timestamp_ms` or later, from `log_start_offset` on."""
    for segment in segments:
        if segment.size_bytes and segment.largest_timestamp_ms() >= timestamp_ms:
            found = _search_segment(segment, timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def _search_segment(segment: Segment, timestamp_ms: int, log_start_offset: int) -> TimestampOffset | None:
    _, indexed_offset = segment.time_index.lookup(timestamp_ms)
    start = segment.indexed_position(max(indexed_offset, log_start_offset))
    for position, header in segment.headers(start):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= log_start_offset:
            found = _search_batch(segment, position, header, timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def _search_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> TimestampOffset | None:
    for record in decode_batch(segment.view(position, header.size_bytes), 0, header):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return TimestampOffset(record.timestamp_ms, record.offset, header.partition_leader_epoch)
    return None


def of_max_timestamp(segments: Segments) -> TimestampOffset | None:
    """The first record that has the largest timestamp of the log; None when no record has a timestamp."""
    segment = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, batch_last_offset = segment.max_timestamp
    if timestamp_ms == NO_TIMESTAMP:
        return None
    for position, header in segment.headers(segment.indexed_position(batch_last_offset)):
        if header.max_timestamp == timestamp_ms:
            return _search_batch(segment, position, header, timestamp_ms, 0)
    return None
