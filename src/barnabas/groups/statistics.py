"""Groups in numbers: what there is, and what has happened."""

from dataclasses import dataclass
from typing import TypedDict


@dataclass(slots=True)
class GroupCounts:
    """What has happened to the groups of a broker since it started; it outlives the shards."""

    offset_commits_count: int = 0  #: offsets of partitions, not requests
    offset_deletions_count: int = 0  #: by OffsetDelete
    offset_expirations_count: int = 0
    classic_rebalances_count: int = 0  #: that a leader's assignment has ended
    consumer_rebalances_count: int = 0  #: epochs that a subscription or a topic has begun


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
    pending_offsets_count: int  #: in open transactions


class GroupStatistics(ClassicStatistics, ConsumerStatistics, OffsetStatistics):
    """A shard of groups."""

    groups_count: int
