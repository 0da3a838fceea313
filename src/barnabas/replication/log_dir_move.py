"""A move of a replica to another log directory of its broker (KIP-113).

Its future replica copies the log batch for batch, like a follower, in a thread and in small steps, while the log is in
use. When hardly anything is missing, the rest is copied on the event loop, where no append runs at the same time, and
the future replica replaces the log. The replaced log stays until the new one is flushed.
"""

import os
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from barnabas.log.copied_state import copy_state
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segments import FilePart
from barnabas.replication.partition import Partition


class MoveState(Enum):
    """The state of a move."""

    COPYING = "copying"  #: the log is in use, its future replica grows
    PROMOTED = "promoted"  #: the future replica is in use, and is being flushed
    DONE = "done"
    CANCELLED = "cancelled"  #: another directory was requested, or the topic was deleted
    FAILED = "failed"  #: a disk failed, or the log is damaged
    STOPPED = "stopped"  #: the broker stops; its next start continues the move


#: The valid next states of each state.
TRANSITIONS: Mapping[MoveState, frozenset[MoveState]] = MappingProxyType(
    {
        MoveState.COPYING: frozenset(set(MoveState) - {MoveState.COPYING, MoveState.DONE}),
        MoveState.PROMOTED: frozenset({MoveState.DONE, MoveState.FAILED, MoveState.STOPPED}),
        MoveState.DONE: frozenset(),
        MoveState.CANCELLED: frozenset(),
        MoveState.FAILED: frozenset(),
        MoveState.STOPPED: frozenset(),
    }
)


class MoveAction(Enum):
    """What a request for a directory requires."""

    NOTHING = "nothing"
    START = "start"
    CANCEL = "cancel"
    RESTART = "restart"  #: cancel, then start


def decide_move(current: LogDirectory, future: LogDirectory | None, destination: LogDirectory) -> MoveAction:
    """Return what to do with a replica in `current`, on its way to `future`, so that it gets to `destination`."""
    if destination is future or (future is None and destination is current):
        return MoveAction.NOTHING
    if future is None:
        return MoveAction.START
    return MoveAction.CANCEL if destination is current else MoveAction.RESTART


class EpochLog(Protocol):
    """The part of a log that determines how far another log has the same records."""

    log_end_offset: int

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last leader that wrote."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` and its end offset; (-1, -1) if unknown."""
        ...


def truncation_offset(copy: EpochLog, source: EpochLog) -> int | None:
    """Return the offset up to which `copy` has the same records as `source`, by leader epochs (KIP-101).

    None if they have no epoch in common, so that no common records are known.
    """
    epoch = copy.latest_epoch
    if epoch is None:
        return min(copy.log_end_offset, source.log_end_offset)
    common_epoch, end_offset = source.end_offset_for_epoch(epoch)
    if common_epoch < epoch and common_epoch >= 0:
        common_epoch, own_end = copy.end_offset_for_epoch(common_epoch)
        end_offset = min(end_offset, own_end)
    return None if common_epoch < 0 else min(end_offset, copy.log_end_offset)


class ReplicaMove:
    """One move: its two logs and its state. Methods run on the event loop, except `copy`."""

    def __init__(self, partition: Partition, source: PartitionLog, future: PartitionLog) -> None:
        self.name = source.topic_partition
        self.partition = partition
        self.source = source
        self.future = future
        self.state = MoveState.COPYING
        #: every transition and its reason, for diagnostics
        self.story: list[str] = []
        self.copied_bytes = 0

    def transition(self, target: MoveState, why: str) -> None:
        assert target in TRANSITIONS[self.state], (self.state, target, self.story)
        self.state = target
        self.story.append(f"{target.value}: {why}")

    def truncate_future(self) -> list[Path]:
        """Truncate the future replica to what the log still has; returns the files to remove. Not while `copy` runs.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk of the future replica fails.
        """
        source, future = self.source, self.future
        future.config = source.config
        end_offset = truncation_offset(future, source)
        if end_offset is None or end_offset < source.first_segment_offset:
            return future.truncate_fully_and_start_at(source.first_segment_offset)
        return future.truncate_to(end_offset)

    def next_part(self, max_bytes: int) -> FilePart:
        """Return the next part to copy.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damage.
        """
        source = self.source
        return source.local.locate(self.future.log_end_offset, max_bytes, source.log_end_offset)

    def copy(self, part: FilePart) -> int:
        """Append `part` to the future replica; returns the size of its whole batches. Blocks; may run in a thread.

        The log may be truncated, and lose its oldest files, at any time: a missing file counts as empty.

        :raises OSError: When `part` cannot be read.
        :raises KafkaError: KAFKA_STORAGE_ERROR when it cannot be written, CORRUPT_MESSAGE or OFFSET_OUT_OF_RANGE
            when it is not the continuation of the copy.
        """
        try:
            fd = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            data = os.pread(fd, part.size_bytes, part.position)
        finally:
            os.close(fd)
        copied_bytes = self.future.append_copied(memoryview(data)).size_bytes
        self.copied_bytes += copied_bytes
        return copied_bytes

    def replace(self, promote: Callable[[], PartitionLog]) -> None:
        """Replace the log by the future replica, which has caught up; `promote` renames its directory.

        :raises KafkaError: KAFKA_STORAGE_ERROR when its disk fails; the log stays in use then.
        """
        copy_state(self.source, self.future)
        self.partition.replace_log(promote())
        self.transition(MoveState.PROMOTED, f"at offset {self.future.log_end_offset}")

    def statistics(self) -> dict[str, object]:
        """Return the progress of the move."""
        return {
            "partition": str(self.source.topic_partition),
            "state": self.state.value,
            "to": str(self.future.directory.parent),
            "copied_bytes": self.copied_bytes,
            "missing_offsets": self.source.log_end_offset - self.future.log_end_offset,
            "story": self.story,
        }
