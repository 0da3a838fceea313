"""Finding the state of producers again: the newest usable snapshot, then the batches behind it. Blocks."""

from pathlib import Path
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import SNAPSHOT_SUFFIX, offset_file
from barnabas.log.producer_snapshot import read_snapshot, snapshot_offsets
from barnabas.log.producer_state import ProducerStates
from barnabas.log.segment import Segment
from barnabas.log.segments import Segments
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.record import decode_batch

#: A transaction marker's value: version (int16), coordinator epoch (int32).
_MARKER_BYTES = 6


class RestoredProducers(NamedTuple):
    """Producers as of the end of the log, and the offset of the snapshot they were read from."""

    states: ProducerStates
    snapshot_offset: int


def restore_producers(
    directory: Path,
    topic_partition: TopicPartition,
    segments: Segments,
    log_start_offset: int,
    log_end_offset: int,
) -> RestoredProducers:
    """The producers at `log_end_offset`; snapshots outside the log are removed, as are damaged ones."""
    states = ProducerStates(topic_partition)
    snapshot_offset = log_start_offset
    for offset in reversed(snapshot_offsets(directory)):
        path = offset_file(directory, offset, SNAPSHOT_SUFFIX)
        if not log_start_offset < offset <= log_end_offset:
            path.unlink()
            continue
        try:
            states.replace(read_snapshot(path))
        except MalformedFile:
            path.unlink()
            continue
        snapshot_offset = offset
        break
    _replay(states, segments, snapshot_offset, log_end_offset)
    return RestoredProducers(states, snapshot_offset)


def _replay(states: ProducerStates, segments: Segments, start_offset: int, end_offset: int) -> None:
    if start_offset >= end_offset:
        return
    for segment in segments.since(start_offset):
        for position, header in segment.headers(segment.position_of(start_offset)):
            if header.producer_id >= 0:
                replay_batch(states, segment, position, header)


def replay_batch(states: ProducerStates, segment: Segment, position: int, header: BatchHeader) -> None:
    """Account for a batch that is in the log already."""
    if not header.is_control:
        states.record(header)
        return
    view = segment.view(position, header.size_bytes)
    end_transaction(states, view, header)


def end_transaction(states: ProducerStates, records: memoryview, header: BatchHeader) -> None:
    """Account for a transaction marker; one that compaction emptied says nothing any more."""
    for marker in decode_batch(records, 0, header):
        value = marker.value or b""
        if len(value) >= _MARKER_BYTES:
            coordinator_epoch = int.from_bytes(value[2:_MARKER_BYTES], "big", signed=True)
            states.end_transaction(header, coordinator_epoch, marker.timestamp_ms)
