"""Members of consumer groups that use the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848).

For them, the group's epoch is the generation. A new target is a rebalance: they get REBALANCE_IN_PROGRESS, and the
owned partitions in their subscription show what they have revoked.
"""

from collections import Counter
from dataclasses import replace

from barnabas.base.ids import random_id
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import FIRST_VERSION_WITH_KNOWN_MEMBER_ID, Join
from barnabas.groups.classic.responses import not_joined
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.embedded import encode_assignment, owned_by
from barnabas.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from barnabas.groups.consumer.heartbeat_update import Progress
from barnabas.groups.consumer.joining import (
    check_size,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from barnabas.groups.consumer.member import ConsumerGroupMember, MemberState, without_epochs
from barnabas.groups.consumer.migration import downgrade, may_downgrade
from barnabas.groups.consumer.settings import MigrationPolicy, Settings
from barnabas.groups.consumer.timers import (
    cancel_rejoin_timer,
    cancel_sync_timer,
    set_rejoin_timer,
    set_session_timer,
    set_sync_timer,
)
from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import read_subscription
from barnabas.wire.coordinator_records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicMemberRejectedError(KafkaError):
    """A classic member that a consumer group refuses. The response names no member, unlike that of a classic group."""


class ClassicMembers:
    """Answers classic requests to consumer groups."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    # JoinGroup

    def join(self, result: CoordinatorResult, group: ConsumerGroup, join: Join, topics_revision: int) -> None:
        """Handle a JoinGroup; it is answered immediately, with the epoch as generation.

        :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        request = join.request
        member_id = request.member_id or random_id(self._settings.context.rng)
        self._check(group, join)
        check_size(group, member_id, self._settings.size_max())
        is_dynamic = request.group_instance_id is None
        if is_dynamic and not request.member_id and join.client.version >= FIRST_VERSION_WITH_KNOWN_MEMBER_ID:
            result.answer(join.pending, not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        subscription = _subscription(join)
        earlier = group.static_member(request.group_instance_id)
        before = self._joining_member(result, group, join, member_id)
        progress = Progress(
            result, group, self._settings, before, _updated_member(before, join, subscription)
        )
        caller = Caller(join.client.client_id, join.client.client_host, join.client.version)
        progress.subscribe(caller, topics_revision)
        owned = owned_by(subscription, progress.image)
        if earlier is not None and self._downgrades_group(group, earlier):
            self._downgrade(result, group, progress, earlier, subscription)
        else:
            progress.assign()
            progress.reconcile(owned)
            set_session_timer(result, group, progress.member, request.session_timeout_ms)
            set_sync_timer(result, group, progress.member)
        cancel_rejoin_timer(result, group, member_id)
        result.answer(join.pending, _joined(progress.member))

    def _downgrades_group(self, group: ConsumerGroup, earlier: ConsumerGroupMember) -> bool:
        """Return whether the group's last member of the consumer protocol returns as a classic one."""
        return not earlier.uses_classic_protocol and may_downgrade(
            group, [earlier], self._settings, joining_count=1
        )

    def _check(self, group: ConsumerGroup, join: Join) -> None:
        """Check that a member can join the group by the classic protocol.

        :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL.
        """
        if self._settings.migration_policy() is MigrationPolicy.DISABLED:
            message = (
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the group "
                "migration is disabled."
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        spoken = Counter(
            protocol.name
            for member in group.members.values()
            if member.classic is not None
            for protocol in member.classic.supported_protocols
        )
        classic_count = sum(member.uses_classic_protocol for member in group.members.values())
        is_known = any(spoken[name] == classic_count for name in join.protocols)
        if join.request.protocol_type != PROTOCOL_TYPE or not is_known:
            message = (
                f"A member with protocols {list(join.protocols)} does not fit the group {group.group_id}."
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)

    @staticmethod
    def _joining_member(
        result: CoordinatorResult, group: ConsumerGroup, join: Join, member_id: str
    ) -> ConsumerGroupMember:
        instance_id = join.request.group_instance_id
        if instance_id is None:
            return dynamic_member(group, member_id, creates=True)
        if join.request.member_id:
            return known_static_member(group, member_id, instance_id)
        return joining_static_member(result, group, member_id, instance_id, is_classic=True)

    def _downgrade(
        self,
        result: CoordinatorResult,
        group: ConsumerGroup,
        progress: Progress,
        earlier: ConsumerGroupMember,
        subscription: ConsumerProtocolSubscription,
    ) -> None:
        """Downgrade the group: its last member of the consumer protocol returns as a classic one."""
        is_stale = group.assignment_epoch < progress.epoch
        target = group.target_of(earlier)
        if not is_stale:
            progress.reconcile(owned_by(subscription, progress.image))
        members = [
            (member, group.target_of(member))
            for member_id, member in group.members.items()
            if member_id != earlier.member_id
        ]
        members.append((progress.member, target))
        downgrade(result, group, members, progress.image, rebalances=is_stale)

    # SyncGroup, Heartbeat

    def sync(
        self,
        result: CoordinatorResult,
        group: ConsumerGroup,
        pending: Pending[SyncGroupResponse],
        request: SyncGroupRequest,
    ) -> None:
        """Handle a SyncGroup: return the member's assignment; no member leads, so none sends assignments.

        :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
            INCONSISTENT_GROUP_PROTOCOL.
        """
        member = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        _check_protocol(member, request)
        if group.assignment_epoch > member.member_epoch and member.state is not _S.UNREVOKED_PARTITIONS:
            set_rejoin_timer(result, group, member)
            result.fail(pending, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "The member must rejoin."))
            return
        cancel_sync_timer(result, group, member.member_id)
        set_session_timer(result, group, member, 0)
        assert member.classic is not None
        subscription = bytes(member.classic.supported_protocols[0].metadata)
        image = self._settings.context.image()
        assignment = encode_assignment(without_epochs(member.assigned), subscription, image)
        response = SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )
        result.answer(pending, response)

    @staticmethod
    def heartbeat(result: CoordinatorResult, group: ConsumerGroup, beat: Heartbeat) -> ErrorCode:
        """Handle a Heartbeat: REBALANCE_IN_PROGRESS if the member has to revoke partitions, or gets new ones.

        :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        member = _classic_member(group, beat.member_id, beat.group_instance_id)
        _check_generation(member, beat.generation_id)
        set_session_timer(result, group, member, 0)
        if not _must_rejoin(group, member):
            return ErrorCode.NONE
        set_rejoin_timer(result, group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS


_S = MemberState


def _must_rejoin(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is _S.UNREVOKED_PARTITIONS:
        return True
    return member.state is _S.UNRELEASED_PARTITIONS and not _waits(group, member)


def _waits(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether other members still own partitions of the member's target."""
    return any(
        group.is_owned(topic_id, index)
        for topic_id, indexes in group.target_of(member).items()
        for index in indexes - member.assigned.get(topic_id, {}).keys()
    )


def _subscription(join: Join) -> ConsumerProtocolSubscription:
    """Return the member's subscription in its preferred protocol.

    :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL.
    """
    try:
        return read_subscription(next(iter(join.protocols.values())))
    except DecodeError as error:
        message = f"Malformed embedded consumer protocol in subscription deserialization: {error}"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message) from error


def _updated_member(
    member: ConsumerGroupMember, join: Join, subscription: ConsumerProtocolSubscription
) -> ConsumerGroupMember:
    request = join.request
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",
        client_id=join.client.client_id,
        client_host=join.client.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in join.protocols.items()
            ],
        ),
    )


def _joined(member: ConsumerGroupMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
    )


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    """Return the member that sends a classic request.

    :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_static_member(group, member_id, instance_id)
    if not member.uses_classic_protocol:
        message = f"Member {member_id} does not use the classic protocol."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def _check_generation(member: ConsumerGroupMember, generation: int) -> None:
    if generation != member.member_epoch:
        message = f"The generation {generation} is not the epoch {member.member_epoch} of member {member.member_id}."
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, message)


def _check_protocol(member: ConsumerGroupMember, request: SyncGroupRequest) -> None:
    assert member.classic is not None
    name = member.classic.supported_protocols[0].name
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        message = (
            f"The protocol {request.protocol_name} of type {request.protocol_type} is not {name} of type "
            f"{PROTOCOL_TYPE}, of the group."
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
