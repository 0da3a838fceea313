"""The input and output of assignors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: Topic id -> indexes of its partitions.
Partitions: TypeAlias = Mapping[bytes, frozenset[int]]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member, as assignors read it."""

    topic_ids: frozenset[bytes]  #: the existing topics of its subscription
    target: Partitions = field(default_factory=dict)  #: its previous target
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group, as assignors read it."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]  #: of every topic to which a member subscribes

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


#: Returns the target of every member; each partition of a subscribed topic is assigned to one subscriber.
Assignor: TypeAlias = Callable[[GroupSpec], dict[str, Partitions]]


def partitions_count(partitions: Partitions) -> int:
    """Return the number of partitions of all topics."""
    return sum(map(len, partitions.values()))
