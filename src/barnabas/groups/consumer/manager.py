"""The consumer groups of one shard."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import replace

from barnabas.base.ids import random_id
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import Join
from barnabas.groups.consumer import timers
from barnabas.groups.consumer.classic_members import ClassicMemberRejectedError, ClassicMembers
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.describe import described
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.heartbeat_update import Progress
from barnabas.groups.consumer.joining import (
    check_epoch,
    check_size,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from barnabas.groups.consumer.leaving import (
    MemberToRemove,
    leaving_members,
    remove_members,
    suspend_static_member,
)
from barnabas.groups.consumer.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState
from barnabas.groups.consumer.migration import check_upgrade, downgrade, may_downgrade, upgrade
from barnabas.groups.consumer.replay import ConsumerReplay
from barnabas.groups.consumer.requests import check_heartbeat, is_full, owned_partitions
from barnabas.groups.consumer.settings import Settings
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.group import Group
from barnabas.groups.rebalance_history import EventKind
from barnabas.groups.statistics import ConsumerStatistics
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_describe import DescribedGroup
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

HeartbeatPending = Pending[ConsumerGroupHeartbeatResponse]


class ConsumerGroups:
    """Handles requests and timers of the consumer groups among a shard's groups."""

    def __init__(self, groups: MutableMapping[str, Group], context: GroupCoordinatorContext) -> None:
        self._groups = groups
        self._context = context
        self.settings = Settings(context)
        self.replays = ConsumerReplay(groups).by_record()
        self.expiries: Mapping[object, Callable[[CoordinatorResult, TimerKey], None]] = {
            timers.SESSION: self._session_expired,
            timers.REBALANCE: self._rebalance_expired,
            timers.REJOIN: self._rejoin_expired,
            timers.SYNC: self._sync_expired,
        }
        self._classic = ClassicMembers(self.settings)
        self._topics_revision = 0  #: when a topic was last created, as far as known

    def find(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group.

        :raises KafkaError: GROUP_ID_NOT_FOUND, also for a group of another type.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    # Heartbeats

    def heartbeat(
        self,
        result: CoordinatorResult,
        pending: HeartbeatPending,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
    ) -> None:
        """Handle a heartbeat: a member joins, is alive, or leaves.

        :raises KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID,
            FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED,
            INVALID_REGULAR_EXPRESSION.
        """
        check_heartbeat(request, caller.api_version, self.settings.assignors())
        if request.member_epoch < JOIN_EPOCH:
            result.answer(pending, self._leave(result, request))
        else:
            result.answer(pending, self._handle_heartbeat(result, request, caller))

    def _handle_heartbeat(
        self, result: CoordinatorResult, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse:
        joins = request.member_epoch == JOIN_EPOCH
        group = self._find_or_create(result, request.group_id) if joins else self.find(request.group_id)
        check_size(group, request.member_id, self.settings.size_max())
        owned = owned_partitions(request.topic_partitions)
        member_id = request.member_id or random_id(self._context.rng)
        if request.instance_id is None:
            member = dynamic_member(group, member_id, creates=joins)
        elif joins:
            member = joining_static_member(result, group, member_id, request.instance_id, is_classic=False)
        else:
            member = known_static_member(group, member_id, request.instance_id)
        check_epoch(member, request.member_epoch, owned)
        progress = Progress(result, group, self.settings, member, _updated_member(member, request, caller))
        progress.subscribe(caller, self._topics_revision)
        progress.assign()
        progress.reconcile(owned)
        self._schedule_session_timeout(result, group, progress.member)
        has_assignment = joins or is_full(request) or progress.member.assigned != member.assigned
        return self._response(request.group_id, progress.member, has_assignment=has_assignment)

    def _find_or_create(self, result: CoordinatorResult, group_id: str) -> ConsumerGroup:
        """Return the group that a member joins: existing, new, or converted from a classic one.

        :raises KafkaError: GROUP_ID_NOT_FOUND for a classic group that cannot be converted.
        """
        group = self._groups.get(group_id)
        if group is None:
            return ConsumerGroup(group_id)
        if not isinstance(group, ClassicGroup):
            return self.find(group_id)
        if group.is_empty:
            group.append_tombstones(result)
            return ConsumerGroup(group_id)
        check_upgrade(group, self.settings)
        return upgrade(result, group, self.settings)

    def _response(
        self, group_id: str, member: ConsumerGroupMember, *, has_assignment: bool
    ) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group_id),
            assignment=_assignment(member) if has_assignment else None,
        )

    def _schedule_session_timeout(
        self, result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> None:
        timers.set_session_timer(result, group, member, self.settings.session_timeout_ms(group.group_id))

    def _leave(
        self, result: CoordinatorResult, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        group = self.find(request.group_id)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = known_static_member(group, request.member_id, request.instance_id)
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            suspend_static_member(result, group, member)
        else:
            self.remove(result, group, EventKind.LEFT, [MemberToRemove(member, "")])
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def remove(
        self,
        result: CoordinatorResult,
        group: ConsumerGroup,
        cause: EventKind,
        leaving: Collection[MemberToRemove],
    ) -> None:
        """Remove members; if all others use the classic protocol, convert the group."""
        image, history = self._context.image(), self._context.rebalances
        for member, reason in leaving:
            history.record(group.group_id, group.group_type, result.now_ms, cause, member.identity, reason)
        members = [member for member, _ in leaving]
        if not may_downgrade(group, members, self.settings):
            remove_members(result, group, members, image, history)
            return
        staying = [member for member in group.members.values() if member not in members]
        targets = [(member, group.target_of(member)) for member in staying]
        downgrade(result, group, targets, image, rebalances=True)

    # Members of the classic protocol

    def coordinates(self, group_id: str) -> bool:
        """Return whether classic requests to a group are for a consumer group."""
        group = self._groups.get(group_id)
        return isinstance(group, ConsumerGroup) and not group.is_empty

    def join(self, result: CoordinatorResult, join: Join) -> None:
        """Handle a JoinGroup.

        :raises ClassicMemberRejectedError: With the codes of `ClassicMembers.join`.
        """
        group = self.find(join.request.group_id)
        try:
            self._classic.join(result, group, join, self._topics_revision)
        except KafkaError as error:
            raise ClassicMemberRejectedError(error.code, error.message) from error

    def sync(
        self, result: CoordinatorResult, pending: Pending[SyncGroupResponse], request: SyncGroupRequest
    ) -> None:
        """Call `ClassicMembers.sync`."""
        self._classic.sync(result, self.find(request.group_id), pending, request)

    def classic_heartbeat(self, result: CoordinatorResult, beat: Heartbeat) -> ErrorCode:
        """Call `ClassicMembers.heartbeat`."""
        return self._classic.heartbeat(result, self.find(beat.group_id), beat)

    def leave(
        self, result: CoordinatorResult, pending: Pending[LeaveGroupResponse], request: LeaveGroupRequest
    ) -> None:
        """Handle a LeaveGroup: each member on its own, with one new epoch for all."""
        group = self.find(request.group_id)
        leaving, responses = leaving_members(group, request.members)
        if leaving:
            self.remove(result, group, EventKind.LEFT, leaving.values())
        result.answer(pending, LeaveGroupResponse(members=responses))

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe a group (ConsumerGroupDescribe).

        :raises KafkaError: GROUP_ID_NOT_FOUND.
        """
        if group_id not in self._groups:  # kafka-consumer-groups prints this text
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return described(self.find(group_id), self.settings, self._context.image())

    # Timers and updates

    def _session_expired(self, result: CoordinatorResult, key: TimerKey) -> None:
        self._fence_member(result, key, EventKind.SESSION_TIMEOUT, "sent no heartbeat in time")

    def _rebalance_expired(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self._groups.get(str(key[1]))
        if isinstance(group, ConsumerGroup) and not timers.has_left_epoch(group, key):
            why = "did not revoke its partitions in time"
            self._fence_member(result, key, EventKind.REBALANCE_TIMEOUT, why)

    def _rejoin_expired(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self._groups.get(str(key[1]))
        if isinstance(group, ConsumerGroup) and key[2] in group.rejoining:
            self._fence_member(result, key, EventKind.REBALANCE_TIMEOUT, "did not rejoin in time")

    def _sync_expired(self, result: CoordinatorResult, key: TimerKey) -> None:
        self._fence_member(result, key, EventKind.SYNC_TIMEOUT, "joined, but sent no SyncGroup in time")

    def _fence_member(self, result: CoordinatorResult, key: TimerKey, cause: EventKind, why: str) -> None:
        _, group_id, member_id = key
        group = self._groups.get(str(group_id))
        if isinstance(group, ConsumerGroup) and (member := group.members.get(str(member_id))) is not None:
            self.remove(result, group, cause, [MemberToRemove(member, why)])

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Start the timers of all members."""
        self._topics_revision = self._context.image().revision
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._schedule_session_timeout(result, group, member)
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        timers.set_rebalance_timer(result, group, member)

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> None:
        """Check subscriptions with the next heartbeat after topics have changed."""
        if after.topics is before.topics:
            return
        if not after.topics.keys() <= before.topics.keys():
            self._topics_revision = after.revision
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.metadata_fresh = (0, 0)

    def statistics(self) -> ConsumerStatistics:
        """Return the number of groups by state, and of members."""
        groups = [group for group in self._groups.values() if isinstance(group, ConsumerGroup)]
        return {
            "consumer_groups": dict(Counter(group.state_name for group in groups)),
            "consumer_members_count": sum(len(group.members) for group in groups),
        }


def _updated_member(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerGroupMember:
    """Return the member with the fields of its heartbeat; missing ones stay."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor
        if request.server_assignor is None
        else request.server_assignor,
        subscribed_topics=member.subscribed_topics if names is None else frozenset(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _assignment(member: ConsumerGroupMember) -> Assignment:
    topics = [
        ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
        for topic_id, epochs in sorted(member.assigned.items())
    ]
    return Assignment(topic_partitions=topics)
