"""Finds offsets by timestamp (ListOffsets) with the time index, the offset index and the records of one batch.

A search is a generator that pauses every few milliseconds so that other work can run; the log may change meanwhile.
It yields None, or a batch to decompress, whose records section the caller sends back.
"""

from collections.abc import Generator
from typing import NamedTuple

from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import Segments
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader
from barnabas.wire.records.bodies import corrupt
from barnabas.wire.records.record import batch_body
from barnabas.wire.records.varint import read_varint

#: Batch headers or records to check before a search pauses: about 2 ms.
LOOKED_AT_COUNT = 2_000


class TimestampOffset(NamedTuple):
    """A record's timestamp, its offset, and the epoch of the leader that wrote it (-1 if unknown)."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class PackedBatch(NamedTuple):
    """A batch whose records are needed; decompression may take long, so another thread may do it."""

    data: bytes
    header: BatchHeader

    def unpack(self) -> bytes:
        """Return the records section.

        :raises KafkaError: CORRUPT_MESSAGE.
        """
        return batch_body(self.data, 0, self.header)


Search = Generator[PackedBatch | None, bytes | None, TimestampOffset | None]


def run_search(search: Search) -> TimestampOffset | None:
    """Run a search to its end without pauses."""
    body: bytes | None = None
    while True:
        try:
            packed = search.send(body)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        body = None if packed is None else packed.unpack()


def first_at_or_after(segments: Segments, timestamp_ms: int, log_start_offset: int) -> Search:
    """Search the first record with `timestamp_ms` or later, from `log_start_offset` on."""
    for segment in segments:
        if not segments.contains(segment):  # retention or the cleaner has removed it meanwhile
            return (yield from first_at_or_after(segments, timestamp_ms, log_start_offset))
        if segment.size_bytes and segment.largest_timestamp_ms() >= timestamp_ms:
            match = yield from _search_segment(segments, segment, timestamp_ms, log_start_offset)
            if match is not None:
                return match
        yield None
    return None


def _search_segment(segments: Segments, segment: Segment, timestamp_ms: int, log_start_offset: int) -> Search:
    """Search one segment; if it is removed during a pause, begin again with all segments."""
    _, indexed_offset = segment.time_index.lookup(timestamp_ms)
    start = segment.indexed_position(max(indexed_offset, log_start_offset))
    for count, (position, header) in enumerate(segment.headers(start), 1):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= log_start_offset:
            data = segment.read(position, header.size_bytes)
            match = yield from _search_batch(data, header, timestamp_ms, log_start_offset)
            if match is not None:
                return match
        elif count % LOOKED_AT_COUNT == 0:
            yield None
        else:
            continue
        if not segments.contains(segment):
            return (yield from first_at_or_after(segments, timestamp_ms, log_start_offset))
    return None


def _search_batch(data: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Search:
    body = yield PackedBatch(data, header)
    assert body is not None
    position = 0
    for count in range(1, header.records_count + 1):
        try:
            size_bytes, position = read_varint(body, position)
            delta_ms, next_position = read_varint(body, position + 1)  # one byte of attributes, unused
            offset_delta, _ = read_varint(body, next_position)
        except IndexError as error:
            raise corrupt(header, "a record is truncated") from error
        position += size_bytes
        if size_bytes < 0 or position > len(body):
            raise corrupt(header, f"a record of {size_bytes} bytes exceeds the batch")
        offset = header.base_offset + offset_delta
        record_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp + delta_ms
        if record_ms >= timestamp_ms and offset >= start_offset:
            return TimestampOffset(record_ms, offset, header.partition_leader_epoch)
        if count % LOOKED_AT_COUNT == 0:
            yield None
    return None


def of_max_timestamp(segments: Segments) -> Search:
    """Search the first record with the largest timestamp of the log; None if no record has a timestamp."""
    segment = segments[0]
    for candidate in segments:
        if not segments.contains(candidate):  # as in `first_at_or_after`
            return (yield from of_max_timestamp(segments))
        if candidate.max_timestamp[0] > segment.max_timestamp[0]:
            segment = candidate
        yield None
    if not segments.contains(segment):
        return (yield from of_max_timestamp(segments))
    timestamp_ms, batch_last_offset = segment.max_timestamp
    if timestamp_ms == NO_TIMESTAMP:
        return None
    for position, header in segment.headers(segment.indexed_position(batch_last_offset)):
        if header.max_timestamp == timestamp_ms:
            data = segment.read(position, header.size_bytes)
            return (yield from _search_batch(data, header, timestamp_ms, 0))
        yield None
        if not segments.contains(segment):
            return (yield from of_max_timestamp(segments))
    return None
