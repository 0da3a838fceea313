"""A member of a consumer group, as its records tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.wire.coordinator_records.consumer_group_member_metadata import ClassicMemberMetadata

#: Topic id -> partition index -> the epoch of the target in which the member was given the partition.
Assigned: TypeAlias = Mapping[bytes, Mapping[int, int]]

#: Epochs by which members join and leave, and that of a member that has not been given one.
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, NO_EPOCH = 0, -1, -2, -1


class MemberState(IntEnum):
    """How far a member is on its way to its target; the numbers are those of the records."""

    STABLE = 0  #: it has what it is to have of its epoch
    UNREVOKED_PARTITIONS = 1  #: it must give up partitions before it learns of a newer epoch
    UNRELEASED_PARTITIONS = 2  #: some of what it is to have is still with others
    UNKNOWN = 127  #: a newer broker wrote a state that is not known here


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """One member; a change makes another one."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str = ""  #: empty for none
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None  #: of a member that speaks the classic protocol
    member_epoch: int = JOIN_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)  #: given up as soon as the member says so

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all that a target gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def moved(
        self, state: MemberState, epoch: int, assigned: Assigned, revoking: Assigned
    ) -> "ConsumerGroupMember":
        """The member in another state, perhaps in another epoch."""
        return replace(
            self,
            state=state,
            member_epoch=epoch,
            previous_epoch=self.member_epoch,
            assigned=assigned,
            revoking=revoking,
        )

    @property
    def speaks_classic(self) -> bool:
        """Whether it joined by JoinGroup."""
        return self.classic is not None

    def assignment_epoch(self, topic_id: bytes, index: int) -> int | None:
        """When a partition that it has was given to it; None for one that it does not have."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(index)
            if epoch is not None:
                return epoch
        return None


def without_epochs(assigned: Assigned) -> Partitions:
    """Which partitions these are."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in assigned.items()}


def owned_partitions(member: ConsumerGroupMember) -> Partitions:
    """What a member has until it says otherwise: what it is giving up, too."""
    assigned, revoking = without_epochs(member.assigned), without_epochs(member.revoking)
    return {
        topic_id: assigned.get(topic_id, frozenset()) | revoking.get(topic_id, frozenset())
        for topic_id in assigned.keys() | revoking.keys()
    }
