"""Which of the directories found at a start are a partition's log: a pure decision.

A move to another log directory leaves, wherever it is interrupted, at least one whole log:

1. The future replica grows in `<topic>-<partition>.<id>-future`, with a mark in it; the log in use is the current one.
2. The future replica has everything: its directory gets the partition's name. From here both have that name, and the
   mark tells which is new. Both have the same records but for what was appended since, which only the new one has.
3. The new one is on the disk for sure: the old one is renamed to be deleted, and the mark is removed.

So of two logs the one that reaches further, by the epoch of its last leader and then by its end, has everything.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """What becomes of a directory."""

    CURRENT = "current"
    FUTURE = "future"  #: the move goes on
    COPY = "copy"  #: it has nothing that the current one lacks: to be deleted
    STRAY = "stray"  #: another topic's: set aside
    LEFT = "left"  #: not to be touched, because the current one may be in a directory that is offline


class FoundReplica(NamedTuple):
    """One directory of a partition."""

    log_dir: int  #: which of the log directories it lies in
    topic_id: bytes | None
    is_future: bool
    #: Whether a move made it.
    is_marked: bool
    #: -1 when no leader has written.
    latest_epoch: int
    log_end_offset: int


class Ambiguous(Exception):
    """Two directories claim to be the log of one partition, and no move explains it."""


def decide_roles(found: Sequence[FoundReplica], *, any_offline: bool) -> list[Role]:
    """The role of each of the directories of one partition; with `any_offline` others may be unknown.

    :raises Ambiguous: When somebody must say which of two logs is to be kept.
    """
    current = _current([each for each in found if not each.is_future])
    futures = sorted((each for each in found if each.is_future), key=_reach)
    if current is None:
        if any_offline:
            return [Role.LEFT] * len(found)
        current = futures[-1]  # its source is gone, so this is all there is
    alike = [each for each in futures if each.topic_id == current.topic_id]
    going_on = next((each for each in reversed(alike) if each.log_dir != current.log_dir), None)
    if current.is_future:
        going_on = None

    def role(each: FoundReplica) -> Role:
        if each is current:
            return Role.CURRENT
        if each.topic_id != current.topic_id:
            return Role.STRAY
        return Role.FUTURE if each is going_on else Role.COPY

    return [role(each) for each in found]


def _current(found: Sequence[FoundReplica]) -> FoundReplica | None:
    """Of two that have the partition's name, the one that reaches further; the new one if they are equal."""
    if len(found) > 1:
        marked_count = sum(each.is_marked for each in found)
        if len(found) > 2 or marked_count != 1 or found[0].topic_id != found[1].topic_id:
            raise Ambiguous
    return max(found, key=lambda each: (*_reach(each), each.is_marked), default=None)


def _reach(found: FoundReplica) -> tuple[int, int]:
    return found.latest_epoch, found.log_end_offset
