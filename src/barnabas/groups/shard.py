"""One partition of `__consumer_offsets`: its groups and their offsets."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import Join
from barnabas.groups.classic.manager import ClassicGroups
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.manager import ConsumerGroups, HeartbeatPending
from barnabas.groups.consumer.member import JOIN_EPOCH
from barnabas.groups.consumer.migration import DOWNGRADED
from barnabas.groups.context import Expire, GroupCoordinatorContext, Replay
from barnabas.groups.group import Group
from barnabas.groups.listing import described, listed
from barnabas.groups.offsets.manager import EXPIRE_OFFSETS, OffsetManager
from barnabas.groups.rebalance_history import EventKind, Rebalance
from barnabas.groups.statistics import GroupStatistics
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.describe_groups import DescribedGroup
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.list_groups import ListedGroup
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.schema import Message


def offset_key(tp: TopicPartition) -> str:
    """Return the key of a committed offset in the audit."""
    return f"offset {tp}"


class DeletedPart(NamedTuple):
    """What one event has deleted of a group.

    The audit's view of it has the offsets by `offset TOPIC-PARTITION`, and with the last ones the group's type.
    """

    view: dict[str, Any]
    is_last: bool


class GroupShard:
    """The groups of a shard with their offsets, and the handlers of records and timers."""

    def __init__(self, context: GroupCoordinatorContext) -> None:
        self.context = context
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self.groups, context)
        self.consumer = ConsumerGroups(self.groups, context)
        self.offsets = OffsetManager(self.groups, context, self.classic.make_simple_group)
        self._deletions: Counter[str] = Counter()  #: by group, requests that are deleting it
        self._replays: dict[type[Message], Replay] = {**self.classic.replays, **self.consumer.replays}
        self._expiries: dict[object, Expire] = {
            **self.classic.expiries,
            **self.consumer.expiries,
            DOWNGRADED: self._downgraded,
            EXPIRE_OFFSETS: self.offsets.expire,
        }

    @property
    def needs_metadata_updates(self) -> bool:
        """Whether changes of topics or group configs can matter to the shard."""
        return bool(self.groups)

    def replay(self, record: AnyRecord, position: RecordPosition) -> None:
        """Apply a record of the log."""
        if isinstance(record, EncodedRecord):
            self.offsets.replay(record, position)
            return
        self._replays[type(record.key)](record.key, record.value, position)

    def replay_transaction_marker(self, marker: EndTransactionMarker) -> None:
        """Apply a transaction marker that ends a producer's transaction."""
        self.offsets.replay_transaction_marker(marker)

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Start the timers."""
        self.classic.on_loaded(result)
        self.consumer.on_loaded(result)
        self.offsets.on_loaded(result)

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        """Handle a timer; its first element is its purpose."""
        self._expiries[key[0]](result, key)

    def catch_up(self, before: MetadataImage) -> Iterable[Step]:
        """Return the steps that delete offsets of topics that were deleted before the shard was loaded."""
        return self.offsets.catch_up(before)

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> Iterable[Step]:
        """Handle changes of topics or group configs; return the steps that delete offsets of deleted topics."""
        self.consumer.on_metadata_update(before, after)
        return self.offsets.on_metadata_update(before, after)

    def on_unloaded(self) -> None:
        """Remove the groups' histories of rebalances, which the next coordinator begins."""
        for group_id in self.groups:
            self.context.rebalances.remove_group(group_id)

    def statistics(self) -> GroupStatistics:
        """Return the number of groups, members and offsets."""
        return {
            "groups_count": len(self.groups),
            **self.classic.statistics(),
            **self.consumer.statistics(),
            **self.offsets.statistics(),
        }

    def _downgraded(self, result: CoordinatorResult, key: TimerKey) -> None:
        group = self.classic.find(str(key[1]))
        if group is not None:
            why = (
                "the group changed to the classic protocol, as its last member of the consumer protocol left"
            )
            self.classic.rebalances.record(result, group, EventKind.PROTOCOL_CHANGED, None, why)
            self.classic.rebalances.maybe_rebalance(result, group, why)

    # Requests

    def join_group(self, result: CoordinatorResult, join: Join) -> None:
        """Call `ClassicGroups.join`, or that of a consumer group.

        :raises KafkaError: Also COORDINATOR_LOAD_IN_PROGRESS while the group is being deleted.
        """
        self._check_no_deletion(join.request.group_id)
        if self.consumer.coordinates(join.request.group_id):
            self.consumer.join(result, join)
        else:
            self.classic.join(result, join)

    def sync_group(
        self, result: CoordinatorResult, pending: Pending[SyncGroupResponse], request: SyncGroupRequest
    ) -> None:
        """Call `ClassicGroups.sync`, or that of a consumer group."""
        if self.consumer.coordinates(request.group_id):
            self.consumer.sync(result, pending, request)
        else:
            self.classic.sync(result, pending, request)

    def heartbeat(self, result: CoordinatorResult, beat: Heartbeat) -> ErrorCode:
        """Call `ClassicGroups.heartbeat`, or that of a consumer group."""
        if self.consumer.coordinates(beat.group_id):
            return self.consumer.classic_heartbeat(result, beat)
        return self.classic.heartbeat(result, beat)

    def leave_group(
        self, result: CoordinatorResult, pending: Pending[LeaveGroupResponse], request: LeaveGroupRequest
    ) -> None:
        """Call `ClassicGroups.leave`, or that of a consumer group."""
        if self.consumer.coordinates(request.group_id):
            self.consumer.leave(result, pending, request)
        else:
            self.classic.leave(result, pending, request)

    def consumer_heartbeat(
        self,
        result: CoordinatorResult,
        pending: HeartbeatPending,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
    ) -> None:
        """Call `ConsumerGroups.heartbeat`.

        :raises KafkaError: Also COORDINATOR_LOAD_IN_PROGRESS while the group is being deleted.
        """
        if request.member_epoch == JOIN_EPOCH:
            self._check_no_deletion(request.group_id)
        self.consumer.heartbeat(result, pending, request, caller)

    def describe_group(self, group_id: str) -> DescribedGroup:
        """Describe a classic group (DescribeGroups).

        :raises KafkaError: GROUP_ID_NOT_FOUND, also for a group of another protocol.
        """
        return described(self.groups.get(group_id), group_id)

    def describe_rebalances(self, group_id: str) -> tuple[Group, list[Rebalance]]:
        """Return a group and its last rebalances, the latest first.

        :raises KafkaError: GROUP_ID_NOT_FOUND.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group, self.context.rebalances.of_group(group_id)

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """List groups in one of these states and of one of these types (ListGroups); empty filters match all."""
        return listed(self.groups.values(), states, types)

    @contextmanager
    def deletion(self, group_id: str) -> Iterator[None]:
        """Refuse joins to a group while it is being deleted, which may take several events."""
        self._deletions[group_id] += 1
        try:
            yield
        finally:
            self._deletions[group_id] -= 1
            self._deletions += Counter()  # drops zeros

    def _check_no_deletion(self, group_id: str) -> None:
        if group_id in self._deletions:  # members try again after this error
            message = f"Group {group_id} is being deleted."
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)

    def delete_group(
        self, result: CoordinatorResult, pending: Pending[DeletedPart], group_id: str, offsets_max: int
    ) -> None:
        """Delete up to `offsets_max` offsets of a group, and the group with the last ones (DeleteGroups).

        :raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_deletion()
        deleted, is_last = self.offsets.delete_some(result, group_id, offsets_max)
        view: dict[str, Any] = {offset_key(tp): offset for tp, offset in deleted.items()}
        if is_last:
            group.append_tombstones(result)
            self.context.rebalances.remove_group(group_id)
            view["type"] = group.group_type
        result.answer(pending, DeletedPart(view, is_last))
