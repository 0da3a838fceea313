"""What an assignor is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: Topic id -> the indexes of partitions of it.
Partitions: TypeAlias = Mapping[bytes, frozenset[int]]

#: Member id -> what it is to have.
Target: TypeAlias = Mapping[str, Partitions]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member, as assignors see it."""

    topic_ids: frozenset[bytes]  #: what it subscribes to, of the topics that exist
    target: Partitions = field(default_factory=dict)  #: what it was to have until now
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group, as assignors see it."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]  #: of every topic that a member subscribes to

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


#: Gives every member its target; every partition of a subscribed topic goes to one subscriber.
Assignor: TypeAlias = Callable[[GroupSpec], dict[str, Partitions]]


def partitions_count(partitions: Partitions) -> int:
    """How many partitions there are in all topics."""
    return sum(map(len, partitions.values()))
