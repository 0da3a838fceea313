"""A member of a consumer group, as its records define it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.rebalance_history import GroupMember
from barnabas.wire.coordinator_records.consumer_group_member_metadata import ClassicMemberMetadata

#: Topic id -> partition index -> the epoch in which the partition was assigned to the member.
Assigned: TypeAlias = Mapping[bytes, Mapping[int, int]]

#: Epochs of members that join, leave, or have not been assigned one.
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, NO_EPOCH = 0, -1, -2, -1


class MemberState(IntEnum):
    """The reconciliation state of a member; the numbers are those of the records."""

    STABLE = 0  #: it owns the target of its epoch
    UNREVOKED_PARTITIONS = 1  #: it must revoke partitions before it gets a newer epoch
    UNRELEASED_PARTITIONS = 2  #: other members still own partitions of its target
    UNKNOWN = 127  #: a state written by a newer broker


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A member; immutable."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str = ""  #: empty for none
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None  #: of a member that uses the classic protocol
    member_epoch: int = JOIN_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)  #: removed when the member confirms the revocation

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member owns everything of a target."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def moved(
        self, state: MemberState, epoch: int, assigned: Assigned, revoking: Assigned
    ) -> "ConsumerGroupMember":
        """Return the member in another state, and possibly in another epoch."""
        return replace(
            self,
            state=state,
            member_epoch=epoch,
            previous_epoch=self.member_epoch,
            assigned=assigned,
            revoking=revoking,
        )

    @property
    def identity(self) -> GroupMember:
        return GroupMember(self.member_id, self.instance_id, self.client_id, self.client_host)

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member joined by JoinGroup."""
        return self.classic is not None

    def assignment_epoch(self, topic_id: bytes, index: int) -> int | None:
        """Return the epoch in which a partition was assigned to the member; None if it is not."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(index)
            if epoch is not None:
                return epoch
        return None


def without_epochs(assigned: Assigned) -> Partitions:
    """Return the partitions without epochs."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in assigned.items()}


def owned_partitions(member: ConsumerGroupMember) -> Partitions:
    """Return what a member owns until it revokes it, including partitions that it is revoking."""
    assigned, revoking = without_epochs(member.assigned), without_epochs(member.revoking)
    return {
        topic_id: assigned.get(topic_id, frozenset()) | revoking.get(topic_id, frozenset())
        for topic_id in assigned.keys() | revoking.keys()
    }
