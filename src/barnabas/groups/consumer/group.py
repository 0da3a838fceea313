"""A consumer group, as its records define it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.commits import check_member_commit, check_member_epoch
from barnabas.groups.consumer.member import LEAVE_EPOCH, ConsumerGroupMember
from barnabas.groups.consumer.records import append_group_tombstones
from barnabas.groups.consumer.regex import ResolvedRegex
from barnabas.groups.group import CommitCheck
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

PROTOCOL_TYPE = "consumer"


class GroupState(StrEnum):
    """The state of a group, from its epochs and its members."""

    EMPTY = "Empty"  #: no members
    ASSIGNING = "Assigning"  #: the epoch of the target is behind that of the group
    RECONCILING = "Reconciling"  #: a member has not reached its target
    STABLE = "Stable"


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group. Its stored state is changed only by records; the last fields are not stored."""

    group_id: str
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)  #: instance id -> member id
    target: dict[str, Partitions] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    epoch: int = 1  #: so that even members without subscribed topics have an epoch to reach
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assignment_timestamp_ms: int = 0
    has_partition_metadata: bool = False  #: as brokers before 4.1 wrote it
    owners: dict[tuple[bytes, int], str] = field(
        default_factory=dict
    )  #: (topic id, partition) -> its owner, also while that revokes it
    #: time until which, and group epoch since which, subscribed topics are known not to have changed
    metadata_fresh: tuple[int, int] = (0, 0)
    #: member id -> epoch that the member must leave before its timer is due
    leaving_epochs: dict[str, int] = field(default_factory=dict)
    #: classic members that must rejoin
    rejoining: set[str] = field(default_factory=set)

    # Changes by records

    def put_member(self, member: ConsumerGroupMember) -> None:
        """Add or replace a member."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
            self._remove_instance(before)
        self.members[member.member_id] = member
        for topic_id, index in _owned_by(member):
            self.owners[topic_id, index] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        self.leaving_epochs.pop(member_id, None)
        self.rejoining.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            self._remove_instance(member)

    def _release(self, member: ConsumerGroupMember) -> None:
        for held in _owned_by(member):
            if self.owners.get(held) == member.member_id:
                del self.owners[held]

    def _remove_instance(self, member: ConsumerGroupMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    # Queries

    def has_metadata_expired(self, now_ms: int) -> bool:
        """Return whether subscribed topics may have changed since the group's last epoch."""
        until_ms, epoch = self.metadata_fresh
        return now_ms >= until_ms or self.epoch < epoch

    def member(self, member_id: str) -> ConsumerGroupMember:
        """Return a member by its id.

        :raises KafkaError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the present member of an instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerGroupMember) -> Partitions:
        """Return the target of a member; a static member takes over that of its predecessor."""
        earlier = self.static_member(member.instance_id)
        return self.target.get(member.member_id if earlier is None else earlier.member_id, {})

    def is_owned(self, topic_id: bytes, index: int) -> bool:
        """Return whether a member owns the partition."""
        return (topic_id, index) in self.owners

    def members_with(self, member: ConsumerGroupMember) -> dict[str, ConsumerGroupMember]:
        """Return all members with the new state of one, which replaces the member with its instance id."""
        members = self.members | {member.member_id: member}
        earlier = self.static_member(member.instance_id)
        if earlier is not None and earlier.member_id != member.member_id:
            members.pop(earlier.member_id, None)
        return members

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    # The interface of all groups (groups/group.py)

    @property
    def group_type(self) -> str:
        """The type in ListGroups."""
        return "consumer"

    @property
    def state_name(self) -> str:
        """The state as Kafka writes it."""
        return self.state.value

    @property
    def protocol_type(self) -> str:
        """The protocol type, which is always `consumer`."""
        return PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitCheck | None:
        """Check the member of an offset commit; tools may commit while the group is empty.

        :raises KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION, UNSUPPORTED_VERSION.
        """
        if generation < 0 and not self.members:
            return None
        if is_transactional and (member_id, group_instance_id, generation) == ("", None, LEAVE_EPOCH):
            return None  # TxnOffsetCommit has no member before v3
        member = self.member(member_id)
        return check_member_commit(member, generation, is_transactional=is_transactional, version=version)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member of an offset fetch.

        :raises KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        if member_id is not None or member_epoch >= 0:
            check_member_epoch(self.member(member_id or ""), member_epoch)

    def on_commit(self, result: CoordinatorResult, member_id: str) -> None:
        """Do nothing: only heartbeats show that a member is alive."""

    def check_offset_deletion(self) -> None:
        """Do nothing: subscriptions are known, so offsets of other topics may be deleted."""

    @property
    def offsets_may_expire(self) -> bool:
        """Return True: subscriptions are known, so offsets of other topics may expire."""
        return True

    def check_deletion(self) -> None:
        """Check that the group has no members.

        :raises KafkaError: NON_EMPTY_GROUP.
        """
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"The group {self.group_id} has members.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic, by name or by expression."""
        return any(topic in subscribed_topics(member, self.regexes) for member in self.members.values())

    def offsets_unused_since_ms(self) -> int | None:
        """Return None: count from each commit."""
        return None

    def append_tombstones(self, result: CoordinatorResult) -> None:
        """Append the tombstones of the group's records."""
        append_group_tombstones(result, self.group_id, self.members, self.regexes)

    def validate(self) -> None:
        """Assert the invariants between events."""
        held = [
            (partition, member.member_id)
            for member in self.members.values()
            for partition in _owned_by(member)
        ]
        assert dict(held) == self.owners, "every partition has one owner"
        assert len(held) == len(self.owners), "every partition has one owner"
        assert self.assignment_epoch <= self.epoch, (self.assignment_epoch, self.epoch)
        for member in self.members.values():
            assert member.member_epoch <= self.epoch, member
            assert (
                member.instance_id is None or self.static_members[member.instance_id] == member.member_id
            ), member


def subscribed_topics(member: ConsumerGroupMember, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the names of the topics to which a member subscribes, existing or not."""
    resolved = regexes.get(member.subscribed_regex)
    return member.subscribed_topics if resolved is None else member.subscribed_topics | resolved.topics


def subscribed_topic_ids(
    member: ConsumerGroupMember, regexes: Mapping[str, ResolvedRegex], image: MetadataImage
) -> frozenset[bytes]:
    """Return the ids of the existing topics to which a member subscribes."""
    topics = (image.topics.get(name) for name in subscribed_topics(member, regexes))
    return frozenset(topic.topic_id for topic in topics if topic is not None)


def _owned_by(member: ConsumerGroupMember) -> Iterable[tuple[bytes, int]]:
    for held in (member.assigned, member.revoking):
        for topic_id, epochs in held.items():
            for index in epochs:
                yield topic_id, index
