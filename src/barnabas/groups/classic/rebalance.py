"""Rebalances of a classic group: from one generation to the next."""

from collections.abc import Callable

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.classic.group import ClassicGroup, InitialWait
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.responses import joined, refuse_joining, refuse_syncing
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.subscriptions import CONSUMER, assigned_topics
from barnabas.groups.classic.timers import await_heartbeat, join_timer, session_timer, sync_timer
from barnabas.groups.rebalance_history import NO_MEMBER, EventKind, RebalanceHistory
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.wire.errors import ErrorCode, KafkaError

_S = ClassicState


class Rebalances:
    """Starts rebalances and advances them."""

    def __init__(self, config: Callable[[], BrokerConfig], history: RebalanceHistory) -> None:
        self._config = config
        self._history = history

    # History

    def record(
        self,
        result: CoordinatorResult,
        group: ClassicGroup,
        kind: EventKind,
        member: ClassicGroupMember | None,
        reason: str = "",
    ) -> None:
        """Record why the group rebalances, before the rebalance begins."""
        identity = NO_MEMBER if member is None else member.identity
        self._history.record(group.group_id, group.group_type, result.now_ms, kind, identity, reason)

    def record_assignment(self, group: ClassicGroup, now_ms: int) -> None:
        """Record that the leader's assignment is stored, which completes the rebalance."""
        members = group.members.values() if group.protocol_type == CONSUMER else ()
        assignments = (
            (member.identity, topics)
            for member in members
            if (topics := assigned_topics(member.assignment)) is not None
        )
        self._history.set_assignments(group.group_id, assignments, len(group.members))
        self._history.complete(group.group_id, now_ms)

    # Joining

    def maybe_rebalance(self, result: CoordinatorResult, group: ClassicGroup, why: str) -> None:
        """Start a rebalance after a change of members, or complete the present one if no member is missing."""
        if group.can_rebalance:
            self.begin(result, group, why)
        elif group.initial_wait is None:
            self.maybe_complete_join(result, group)

    def begin(self, result: CoordinatorResult, group: ClassicGroup, why: str) -> None:
        """Make all members rejoin; those that wait for an assignment get REBALANCE_IN_PROGRESS."""
        was_empty = group.is_empty
        if group.state is _S.COMPLETING_REBALANCE:
            error = KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"The group rebalances: {why}.")
            self.fail_pending_syncs(result, group, error)
        result.cancel_timer(sync_timer(group.group_id))
        group.transition(_S.PREPARING_REBALANCE, why, result.now_ms)
        if was_empty:
            self._begin_initial_wait(result, group)
        elif group.all_have_joined:
            self.complete_join(result, group)
        else:
            result.set_timer(join_timer(group.group_id), group.rebalance_timeout_ms)

    def maybe_complete_join(self, result: CoordinatorResult, group: ClassicGroup) -> None:
        """Complete the join phase if it is in progress and all members have joined."""
        if group.state is _S.PREPARING_REBALANCE and group.all_have_joined:
            self.complete_join(result, group)

    def complete_join(self, result: CoordinatorResult, group: ClassicGroup) -> None:
        """Start a generation with the members that have joined, and static members that are away."""
        result.cancel_timer(join_timer(group.group_id))
        absent = [member for member in group.members.values() if member.joining is None]
        for member in absent:
            if not member.is_static:
                late = f"did not rejoin within {group.rebalance_timeout_ms} ms"
                self.record(result, group, EventKind.REBALANCE_TIMEOUT, member, late)
                group.remove(member.member_id)
                result.cancel_timer(session_timer(group.group_id, member.member_id))
        if group.members and not group.elect_joined_leader():
            # all members are static and away: their sessions expire, or one returns
            result.set_timer(join_timer(group.group_id), group.rebalance_timeout_ms)
            return
        group.begin_generation(result.now_ms)
        self._history.set_epoch(group.group_id, group.generation)
        if group.is_empty:
            self.record_assignment(group, result.now_ms)
            result.append(GroupMetadataKey(group=group.group_id), group_record(group, {}))
            return
        for member in group.members.values():
            self._answer_joined(result, group, member)
        group.unsynced_members.update(group.members)
        result.set_timer(sync_timer(group.group_id), group.rebalance_timeout_ms)

    def expire_join(self, result: CoordinatorResult, group: ClassicGroup) -> None:
        """End the wait for members, unless the initial wait is to be extended."""
        if group.state is not _S.PREPARING_REBALANCE:
            return
        wait = group.initial_wait
        if wait is not None and wait.is_extended and wait.remaining_ms:
            delay_ms = min(self._initial_delay_ms, wait.remaining_ms)
            group.initial_wait = InitialWait(delay_ms, max(wait.remaining_ms - wait.delay_ms, 0))
            result.set_timer(join_timer(group.group_id), delay_ms)
        else:
            self.complete_join(result, group)

    def _begin_initial_wait(self, result: CoordinatorResult, group: ClassicGroup) -> None:
        delay_ms = self._initial_delay_ms
        group.initial_wait = InitialWait(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        result.set_timer(join_timer(group.group_id), delay_ms)

    @property
    def _initial_delay_ms(self) -> int:
        return self._config().integer("group.initial.rebalance.delay.ms")

    @staticmethod
    def _answer_joined(result: CoordinatorResult, group: ClassicGroup, member: ClassicGroupMember) -> None:
        if member.joining is not None:
            result.answer(member.joining, joined(group, member.member_id))
            member.joining = None
        member.is_new = False
        await_heartbeat(result, group.group_id, member)

    # Syncing

    @staticmethod
    def fail_pending_syncs(result: CoordinatorResult, group: ClassicGroup, error: KafkaError) -> None:
        """Fail the SyncGroup requests of members that wait for the assignment of this generation."""
        for member in group.members.values():
            member.assignment = b""
            if member.syncing is not None:
                refuse_syncing(result, member, error)
                await_heartbeat(result, group.group_id, member)

    def expire_sync(self, result: CoordinatorResult, group: ClassicGroup) -> None:
        """Remove members that joined but did not send SyncGroup."""
        late = sorted(group.unsynced_members)
        if not late or group.state not in (_S.COMPLETING_REBALANCE, _S.STABLE):
            return
        timeout_ms = group.rebalance_timeout_ms
        for member_id in late:
            why = f"joined, but sent no SyncGroup within {timeout_ms} ms"
            self.record(result, group, EventKind.SYNC_TIMEOUT, group.members[member_id], why)
            group.remove(member_id)
            result.cancel_timer(session_timer(group.group_id, member_id))
        self.begin(result, group, f"{', '.join(late)} did not sync in time")

    # Leaving

    def remove_member(
        self, result: CoordinatorResult, group: ClassicGroup, member: ClassicGroupMember
    ) -> None:
        """Remove a member that has left or expired; its waiting requests get an error."""
        refuse_joining(result, member, ErrorCode.UNKNOWN_MEMBER_ID)
        error = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"'{member.member_id}' is no longer a member.")
        refuse_syncing(result, member, error)
        result.cancel_timer(session_timer(group.group_id, member.member_id))
        group.remove(member.member_id)

    def expire_session(self, result: CoordinatorResult, group: ClassicGroup, member_id: str) -> None:
        """Remove a member whose session has expired, or a pending member id."""
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            group.remove(member_id)
            self.maybe_complete_join(result, group)
        elif member is not None and member.needs_heartbeats:
            why = f"sent no heartbeat within {member.session_timeout_ms} ms"
            self.record(result, group, EventKind.SESSION_TIMEOUT, member, why)
            self.remove_member(result, group, member)
            if group.can_rebalance:
                self.begin(result, group, f"{member_id} sent no heartbeat in time")
            else:
                self.maybe_complete_join(result, group)
