"""Statistics and counters of groups."""

from dataclasses import dataclass
from typing import TypedDict


@dataclass(slots=True)
class GroupCounts:
    """Counters of a broker's groups; they outlive the shards."""

    offset_commits_count: int = 0  #: of partitions, not of requests
    offset_deletions_count: int = 0  #: by OffsetDelete
    offset_expirations_count: int = 0
    classic_rebalances_count: int = 0  #: completed by a leader's assignment
    consumer_rebalances_count: int = 0  #: new epochs because of subscriptions or topics


class ClassicStatistics(TypedDict):
    """The classic groups of a shard."""

    classic_groups: dict[str, int]  #: by state
    classic_members_count: int


class ConsumerStatistics(TypedDict):
    """The consumer groups of a shard."""

    consumer_groups: dict[str, int]  #: by state
    consumer_members_count: int


class OffsetStatistics(TypedDict):
    """The offsets of a shard."""

    offsets_count: int
    pending_offsets_count: int  #: of pending transactions


class GroupStatistics(ClassicStatistics, ConsumerStatistics, OffsetStatistics):
    """A shard of groups."""

    groups_count: int
