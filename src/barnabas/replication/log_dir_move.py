"""A replica on its way to another log directory of its broker (KIP-113).

Its future replica copies the log, batch for batch as a follower would, in a thread and in small steps, while the log
is in use. When hardly anything is missing, the rest is copied in one go on the event loop, where nobody can append
meanwhile, and the future replica takes the log's place. The log that was replaced stays until the new one is flushed.
"""

import os
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segments import FilePart
from barnabas.replication.partition import Partition


class MoveState(Enum):
    """How far a move has come."""

    COPYING = "copying"  #: the log is in use, its future replica grows
    PROMOTED = "promoted"  #: the future replica is in use, and is being flushed
    DONE = "done"
    CANCELLED = "cancelled"  #: another directory was wished for, or the topic was deleted
    FAILED = "failed"  #: a disk failed, or the log is damaged
    STOPPED = "stopped"  #: the broker stops; its next start goes on


#: From each state those that may follow.
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
    """What a wish for a directory asks for."""

    NOTHING = "nothing"
    START = "start"
    CANCEL = "cancel"
    RESTART = "restart"  #: cancel, then start


def decide_move(current: LogDirectory, future: LogDirectory | None, destination: LogDirectory) -> MoveAction:
    """What is to be done so that a replica in `current`, on its way to `future`, comes to `destination`."""
    if destination is future or (future is None and destination is current):
        return MoveAction.NOTHING
    if future is None:
        return MoveAction.START
    return MoveAction.CANCEL if destination is current else MoveAction.RESTART


class EpochLog(Protocol):
    """What of a log tells whether another one agrees with it."""

    log_end_offset: int

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last leader that wrote."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and where it ended; (-1, -1) when that is unknown."""
        ...


def truncation_offset(copy: EpochLog, source: EpochLog) -> int | None:
    """Up to where `copy` has what `source` has, by the epochs of their leaders (KIP-101).

    None when they have no epoch in common: then nothing is known to be the same.
    """
    epoch = copy.latest_epoch
    if epoch is None:
        return min(copy.log_end_offset, source.log_end_offset)
    found, end_offset = source.end_offset_for_epoch(epoch)
    if found < epoch and found >= 0:
        found, own_end = copy.end_offset_for_epoch(found)
        end_offset = min(end_offset, own_end)
    return None if found < 0 else min(end_offset, copy.log_end_offset)


class ReplicaMove:
    """One move: its two logs and its state. The loop calls it, but for `copy`."""

    def __init__(self, partition: Partition, source: PartitionLog, future: PartitionLog) -> None:
        self.name = source.topic_partition
        self.partition = partition
        self.source = source
        self.future = future
        self.state = MoveState.COPYING
        #: every change of the state and why, for people
        self.story: list[str] = []
        self.copied_bytes = 0

    def transition(self, target: MoveState, why: str) -> None:
        """Come to another state."""
        assert target in TRANSITIONS[self.state], (self.state, target, self.story)
        self.state = target
        self.story.append(f"{target.value}: {why}")

    def follow(self) -> list[Path]:
        """Cut from the future replica what the log does not have, or does not have any more.

        Gives back files to remove. Not while `copy` runs.

        :raises KafkaError: KAFKA_STORAGE_ERROR when the disk of the future replica fails.
        """
        source, future = self.source, self.future
        future.config = source.config
        end_offset = truncation_offset(future, source)
        if end_offset is None or end_offset < source.first_segment_offset:
            return future.truncate_fully_and_start_at(source.first_segment_offset)
        return future.truncate_to(end_offset)

    def next_part(self, max_bytes: int) -> FilePart:
        """What is to be copied next.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damage.
        """
        return self.source.locate(self.future.log_end_offset, max_bytes)

    def copy(self, part: FilePart) -> int:
        """Append `part` to the future replica; how many bytes of whole batches it had. Blocks; may run in a thread.

        The log may be cut, and lose its oldest files, at any time: a file that is gone counts as empty.

        :raises OSError: When `part` cannot be read.
        :raises KafkaError: KAFKA_STORAGE_ERROR when it cannot be written, CORRUPT_MESSAGE or OFFSET_OUT_OF_RANGE when
            it is not what follows.
        """
        try:
            fd = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            data = os.pread(fd, part.size_bytes, part.position)
        finally:
            os.close(fd)
        copied_bytes = self.future.append_as_follower(memoryview(data)).size_bytes
        self.copied_bytes += copied_bytes
        return copied_bytes

    def replace(self, promote: Callable[[], PartitionLog]) -> None:
        """Let the future replica, which has everything, take the log's place; `promote` gives it the log's name.

        :raises KafkaError: KAFKA_STORAGE_ERROR when its disk fails; the log stays in use then.
        """
        self.future.take_over(self.source)
        self.partition.replace_log(promote())
        self.transition(MoveState.PROMOTED, f"at offset {self.future.log_end_offset}")

    def statistics(self) -> dict[str, object]:
        """How far it has come, for people."""
        return {
            "partition": str(self.source.topic_partition),
            "state": self.state.value,
            "to": str(self.future.directory.parent),
            "copied_bytes": self.copied_bytes,
            "missing_offsets": self.source.log_end_offset - self.future.log_end_offset,
            "story": self.story,
        }
