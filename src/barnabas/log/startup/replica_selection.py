"""Selects which of the directories found at startup is a partition's log, as a pure function.

A move to another log directory leaves at least one complete log, wherever it is interrupted:

1. The future replica grows in `<topic>-<partition>.<id>-future`, which contains a mark; the current log is in use.
2. The future replica has caught up: its directory is renamed to the partition's name. Now both directories have that
   name, and the mark tells which is new. Both have the same records, except those appended since, which only the new
   one has.
3. The new log is flushed: the old one is renamed for deletion. When that is flushed, too, the mark is removed.

So of two logs the one that reaches further, by the epoch of its last leader and then by its end, is complete.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """What to do with a directory of a partition."""

    CURRENT = "current"
    FUTURE = "future"  #: the move continues
    COPY = "copy"  #: it has nothing that the current log lacks: delete it
    STRAY = "stray"  #: it belongs to another topic: rename it
    LEFT = "left"  #: leave it unchanged, because the current log may be in an offline directory


class FoundReplica(NamedTuple):
    """One directory of a partition."""

    log_dir: int  #: index of its log directory
    topic_id: bytes | None
    is_future: bool
    #: Whether a move created it.
    is_marked: bool
    #: -1 if no leader has written.
    latest_epoch: int
    log_end_offset: int


class AmbiguousReplicasError(Exception):
    """Raised if two directories are named like the partition, and no move explains it."""


def decide_roles(replicas: Sequence[FoundReplica], *, any_offline: bool) -> list[Role]:
    """Return the role of each directory of one partition; with `any_offline` there may be more directories.

    :raises AmbiguousReplicasError: When the operator must decide which of two logs to keep.
    """
    current = _current([replica for replica in replicas if not replica.is_future])
    futures = sorted((replica for replica in replicas if replica.is_future), key=_reach)
    if current is None:
        if any_offline:
            return [Role.LEFT] * len(replicas)
        current = futures[-1]  # its source does not exist any more
    same_topic = [replica for replica in futures if replica.topic_id == current.topic_id]
    continued = next(
        (replica for replica in reversed(same_topic) if replica.log_dir != current.log_dir), None
    )
    if current.is_future:
        continued = None

    def role(replica: FoundReplica) -> Role:
        if replica is current:
            return Role.CURRENT
        if replica.topic_id != current.topic_id:
            return Role.STRAY
        return Role.FUTURE if replica is continued else Role.COPY

    return [role(replica) for replica in replicas]


def _current(replicas: Sequence[FoundReplica]) -> FoundReplica | None:
    """Return the replica with the partition's name that reaches furthest; the marked one if they are equal."""
    if len(replicas) > 1:
        marked_count = sum(replica.is_marked for replica in replicas)
        if len(replicas) > 2 or marked_count != 1 or replicas[0].topic_id != replicas[1].topic_id:
            raise AmbiguousReplicasError
    return max(replicas, key=lambda replica: (*_reach(replica), replica.is_marked), default=None)


def _reach(replica: FoundReplica) -> tuple[int, int]:
    return replica.latest_epoch, replica.log_end_offset
