"""The classic groups of one shard."""

from collections import Counter

from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.heartbeat import Heartbeat, heartbeat
from barnabas.groups.classic.join import Join, Joining
from barnabas.groups.classic.leave import leave, unknown_member_responses
from barnabas.groups.classic.rebalance import Rebalances
from barnabas.groups.classic.records import group_of, new_group_record
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.sync import apply_assignment, sync
from barnabas.groups.classic.timers import JOIN, SESSION, SYNC, await_heartbeat
from barnabas.groups.context import Expire, GroupCoordinatorContext, Replay
from barnabas.groups.group import Group
from barnabas.groups.rebalance_history import EventKind
from barnabas.groups.statistics import ClassicStatistics
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.schema import Message


class ClassicGroups:
    """Finds, creates and loads classic groups, and passes requests and timers to them.

    `groups` has all groups of the shard, including those of other protocols.
    """

    def __init__(self, groups: dict[str, Group], context: GroupCoordinatorContext) -> None:
        self._groups = groups
        self._config = context.config
        self._counts = context.counts
        self.rebalances = Rebalances(context.config, context.rebalances)
        self._joining = Joining(context.config, context.rng, self.rebalances)
        self._new_groups: dict[str, ClassicGroup] = {}  #: groups whose first record is being written
        self._is_loaded = False  #: until then, groups have only what their records contain
        self.replays: dict[type[Message], Replay] = {GroupMetadataKey: self._replay}
        self.expiries: dict[object, Expire] = {
            JOIN: self._expire_join,
            SYNC: self._expire_sync,
            SESSION: self._expire_session,
        }

    # Requests

    def join(self, result: CoordinatorResult, join: Join) -> None:
        """Handle a JoinGroup; without a member id it creates the group if necessary.

        :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        group = self.find(join.request.group_id)
        if group is not None:
            self._joining.join(result, group, join)
        elif join.request.member_id:
            raise _no_member(join.request.group_id)
        else:
            self._join_new_group(result, join)

    def sync(
        self, result: CoordinatorResult, pending: Pending[SyncGroupResponse], request: SyncGroupRequest
    ) -> None:
        """Call `sync.sync`."""
        sync(result, self._known(request.group_id), request, pending, self.rebalances)

    def heartbeat(self, result: CoordinatorResult, beat: Heartbeat) -> ErrorCode:
        """Call `heartbeat.heartbeat`."""
        return heartbeat(result, self._known(beat.group_id), beat)

    def leave(
        self, result: CoordinatorResult, pending: Pending[LeaveGroupResponse], request: LeaveGroupRequest
    ) -> None:
        """Call `leave.leave`; an unknown group has no members."""
        group = self.find(request.group_id)
        if group is None:
            result.answer(pending, unknown_member_responses(request.members))
        else:
            result.answer(pending, leave(result, group, request.members, self.rebalances))

    def make_simple_group(self, group_id: str) -> None:
        """Create a group without members and records, for consumers that only commit offsets."""
        self._groups[group_id] = ClassicGroup(group_id, None)

    def find(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group; None if it does not exist, or has another protocol."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _known(self, group_id: str) -> ClassicGroup:
        group = self.find(group_id)
        if group is None:
            raise _no_member(group_id)
        return group

    def _join_new_group(self, result: CoordinatorResult, join: Join) -> None:
        """Join a group that exists once its record is written; an empty group of another protocol is replaced.

        :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL.
        """
        group_id = join.request.group_id
        other = self._groups.get(group_id)
        if other is not None and not other.is_empty:
            message = f"The group '{group_id}' uses the {other.group_type} protocol."
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
        group = ClassicGroup(group_id, result.now_ms)
        try:
            self._joining.join(result, group, join)
        except KafkaError as error:  # the group is created even so, as in Kafka
            result.fail(join.pending, error)
        if other is not None:
            other.append_tombstones(result)
        result.append(GroupMetadataKey(group=group_id), new_group_record(group))
        self._new_groups[group_id] = group

        def discard_new_group(instead: CoordinatorResult, error: KafkaError) -> None:
            del self._new_groups[group_id]
            instead.fail(join.pending, error)

        result.on_append_error = discard_new_group

    # The log

    def _replay(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, position: RecordPosition
    ) -> None:
        if value is None:
            self._remove(key.group, position)
            return
        new_group = self._new_groups.pop(key.group, None)
        group = self.find(key.group)
        if new_group is not None:
            self._groups[key.group] = new_group
        elif group is None or not self._is_loaded:
            self._groups[key.group] = group_of(key.group, value)
        elif apply_assignment(group, value, position.timestamp_ms):
            self._counts.classic_rebalances_count += 1
            self.rebalances.record_assignment(group, position.timestamp_ms)

    def _remove(self, group_id: str, position: RecordPosition) -> None:
        group = self.find(group_id)
        if group is not None:
            group.transition(
                ClassicState.DEAD, "its record was replaced by a tombstone", position.timestamp_ms
            )
            del self._groups[group_id]

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Start the session timeouts of all members."""
        self._is_loaded = True
        size_max = self._config().integer("group.max.size")
        for group in self._classic():
            self.await_members(result, group)
            if len(group.members) > size_max:
                why = f"{len(group.members)} members exceed group.max.size={size_max}"
                self.rebalances.record(result, group, EventKind.COORDINATOR, None, why)
                self.rebalances.begin(result, group, why)

    @staticmethod
    def await_members(result: CoordinatorResult, group: ClassicGroup) -> None:
        """Start the session timeouts of a group that was read from its record."""
        for member in group.members.values():
            await_heartbeat(result, group.group_id, member)

    # Timers

    def _expire_join(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self.find(str(key[1]))
        if group is not None:
            self.rebalances.expire_join(result, group)

    def _expire_sync(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self.find(str(key[1]))
        if group is not None:
            self.rebalances.expire_sync(result, group)

    def _expire_session(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self.find(str(key[1]))
        if group is not None:
            self.rebalances.expire_session(result, group, str(key[2]))

    # Statistics

    def _classic(self) -> list[ClassicGroup]:
        return [group for group in self._groups.values() if isinstance(group, ClassicGroup)]

    def statistics(self) -> ClassicStatistics:
        """Return the number of groups by state, and of members."""
        groups = self._classic()
        return {
            "classic_groups": dict(Counter(group.state_name for group in groups)),
            "classic_members_count": sum(len(group.members) for group in groups),
        }


def _no_member(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no group '{group_id}' with members.")
