"""Finding offsets by time (ListOffsets): time index, then offset index, then the records of one batch.

A search is a generator that stops every few milliseconds, so that others can be served; the log may change meanwhile.
It yields None, or a batch to be unpacked, whose records section is sent back.
"""

from collections.abc import Generator
from typing import NamedTuple

from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import Segments
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader
from barnabas.wire.records.bodies import corrupt
from barnabas.wire.records.record import batch_body
from barnabas.wire.records.varint import read_varint

#: Batch headers, or records, that are looked at before a search stops: about 2 ms.
LOOKED_AT_COUNT = 2_000


class TimestampOffset(NamedTuple):
    """A record's timestamp, offset and the epoch of the leader that wrote it (-1 when unknown)."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class PackedBatch(NamedTuple):
    """A batch whose records are needed; unpacking them may take long, and another thread may do it."""

    data: bytes
    header: BatchHeader

    def unpack(self) -> bytes:
        """Return the records section.

        :raises KafkaError: CORRUPT_MESSAGE.
        """
        return batch_body(self.data, 0, self.header)


Search = Generator[PackedBatch | None, bytes | None, TimestampOffset | None]


def run_search(search: Search) -> TimestampOffset | None:
    """Search to the end in one go."""
    body: bytes | None = None
    while True:
        try:
            packed = search.send(body)
        except StopIteration as found:
            return found.value  # type: ignore[no-any-return]
        body = None if packed is None else packed.unpack()


def first_at_or_after(segments: Segments, timestamp_ms: int, log_start_offset: int) -> Search:
    """Search the first record with `timestamp_ms` or later, from `log_start_offset` on."""
    for segment in segments:
        if not segments.holds(segment):  # retention, or the cleaner, has removed it meanwhile
            return (yield from first_at_or_after(segments, timestamp_ms, log_start_offset))
        if segment.size_bytes and segment.largest_timestamp_ms() >= timestamp_ms:
            found = yield from _search_segment(segment, timestamp_ms, log_start_offset)
            if found is not None:
                return found
        yield None
    return None


def _search_segment(segment: Segment, timestamp_ms: int, log_start_offset: int) -> Search:
    """Search one segment, by headers that are read before the search stops: they stay valid if it is removed."""
    _, indexed_offset = segment.time_index.lookup(timestamp_ms)
    start = segment.indexed_position(max(indexed_offset, log_start_offset))
    mapped = memoryview(segment.mapped())
    for count, (position, header) in enumerate(segment.headers(start), 1):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= log_start_offset:
            data = bytes(mapped[position : position + header.size_bytes])
            found = yield from _search_batch(data, header, timestamp_ms, log_start_offset)
            if found is not None:
                return found
        elif count % LOOKED_AT_COUNT == 0:
            yield None
    return None


def _search_batch(data: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Search:
    body = yield PackedBatch(data, header)
    assert body is not None
    position = 0
    for count in range(1, header.records_count + 1):
        try:
            size_bytes, position = read_varint(body, position)
            delta_ms, at = read_varint(body, position + 1)  # one byte of attributes, unused
            offset_delta, _ = read_varint(body, at)
        except IndexError as error:
            raise corrupt(header, "a record is cut off") from error
        position += size_bytes
        if size_bytes < 0 or position > len(body):
            raise corrupt(header, f"a record of {size_bytes} bytes ends outside of the batch")
        offset = header.base_offset + offset_delta
        at_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp + delta_ms
        if at_ms >= timestamp_ms and offset >= start_offset:
            return TimestampOffset(at_ms, offset, header.partition_leader_epoch)
        if count % LOOKED_AT_COUNT == 0:
            yield None
    return None


def of_max_timestamp(segments: Segments) -> Search:
    """Search the first record that has the largest timestamp of the log; None when no record has a timestamp."""
    segment = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, batch_last_offset = segment.max_timestamp
    if timestamp_ms == NO_TIMESTAMP:
        return None
    mapped = memoryview(segment.mapped())
    for position, header in segment.headers(segment.indexed_position(batch_last_offset)):
        if header.max_timestamp == timestamp_ms:
            data = bytes(mapped[position : position + header.size_bytes])
            return (yield from _search_batch(data, header, timestamp_ms, 0))
        yield None
    return None
