"""Restores producer state from the newest usable snapshot and the batches after it. Blocks."""

from pathlib import Path
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import SNAPSHOT_SUFFIX, offset_file
from barnabas.log.producers.producer_snapshot import read_snapshot, snapshot_offsets
from barnabas.log.producers.producer_state_manager import ProducerStateEntry, ProducerStateManager
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import Segments
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.control import read_end_marker


class RestoredProducers(NamedTuple):
    """The producer state at the end of the log, and the offset of the snapshot that it was read from."""

    states: ProducerStateManager
    snapshot_offset: int


class StateCopy(NamedTuple):
    """The producer state before `offset`, kept in memory."""

    offset: int
    entries: list[ProducerStateEntry]

    @classmethod
    def of(cls, states: ProducerStateManager, offset: int) -> "StateCopy":
        return cls(offset, [entry.copy() for entry in states.entries])


def restore_producers(
    directory: Path,
    topic_partition: TopicPartition,
    segments: Segments,
    log_start_offset: int,
    log_end_offset: int,
    copy: StateCopy | None = None,
) -> RestoredProducers:
    """Restore the producer state at `log_end_offset`; removes snapshots outside the log and damaged ones.

    :param copy: The state at an offset of the log, from which fewer batches may have to be read.
    """
    for offset in snapshot_offsets(directory):
        if not log_start_offset < offset <= log_end_offset:
            disk.remove_file(offset_file(directory, offset, SNAPSHOT_SUFFIX))
    if copy is not None:
        newest = max(snapshot_offsets(directory), default=log_start_offset)
        if copy.offset > newest:
            states = ProducerStateManager(topic_partition)
            states.replace(entry.copy() for entry in copy.entries)
            _replay(states, segments, copy.offset, log_end_offset)
            return RestoredProducers(states, newest)
    return producers_at(directory, topic_partition, segments, log_start_offset, log_end_offset)


def producers_at(
    directory: Path,
    topic_partition: TopicPartition,
    segments: Segments,
    log_start_offset: int,
    offset: int,
) -> RestoredProducers:
    """Restore the producer state at `offset`, where a batch begins; removes damaged snapshots."""
    states = ProducerStateManager(topic_partition)
    snapshot_offset = log_start_offset
    for snapshot_at in reversed(snapshot_offsets(directory)):
        if not log_start_offset < snapshot_at <= offset:
            continue
        path = offset_file(directory, snapshot_at, SNAPSHOT_SUFFIX)
        try:
            states.replace(read_snapshot(path))
        except MalformedFile:
            disk.remove_file(path)
            continue
        snapshot_offset = snapshot_at
        break
    _replay(states, segments, snapshot_offset, offset)
    return RestoredProducers(states, snapshot_offset)


def _replay(states: ProducerStateManager, segments: Segments, start_offset: int, end_offset: int) -> None:
    if start_offset >= end_offset:
        return
    for segment in segments.since(start_offset):
        for position, header in segment.headers(segment.position_of(start_offset)):
            if header.base_offset >= end_offset:
                return
            if header.producer_id >= 0:
                replay_batch(states, segment, position, header)


def replay_batch(
    states: ProducerStateManager, segment: Segment, position: int, header: BatchHeader
) -> AbortedTransaction | None:
    """Update the state with a producer's batch that is in the log already; returns the transaction that it aborted."""
    if not header.is_control:
        states.record(header)
        return None
    return end_transaction(states, segment.view(position, header.size_bytes), header)


def end_transaction(
    states: ProducerStateManager, records: memoryview, header: BatchHeader
) -> AbortedTransaction | None:
    """Update the state with the transaction marker at the start of `records`; returns the transaction that it aborted.

    Does nothing for a marker that compaction has emptied.
    """
    marker = read_end_marker(records, 0, header)
    return None if marker is None else states.end_transaction(marker, header.last_offset)
