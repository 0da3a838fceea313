"""Replay of the records of consumer groups. It never fails."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import LEAVE_EPOCH, ConsumerGroupMember, MemberState
from barnabas.groups.consumer.records import read_assigned, read_state, read_target
from barnabas.groups.consumer.regex import ResolvedRegex
from barnabas.groups.group import Group
from barnabas.wire.coordinator_records import consumer_group_current_member_assignment as current
from barnabas.wire.coordinator_records import consumer_group_member_metadata as metadata
from barnabas.wire.coordinator_records import consumer_group_metadata as epoch
from barnabas.wire.coordinator_records import consumer_group_partition_metadata as partitions
from barnabas.wire.coordinator_records import consumer_group_regular_expression as regex
from barnabas.wire.coordinator_records import consumer_group_target_assignment_member as target
from barnabas.wire.coordinator_records import consumer_group_target_assignment_metadata as assignment
from barnabas.wire.schema import Message


class ConsumerReplay:
    """Changes groups according to records."""

    def __init__(self, groups: MutableMapping[str, Group]) -> None:
        """:param groups: All groups of the shard, including classic ones."""
        self._groups = groups

    def by_record(self) -> Mapping[type[Message], Callable[[Any, Any, RecordPosition], None]]:
        """Return the replay method of each record, by the type of its key."""
        return {
            metadata.ConsumerGroupMemberMetadataKey: self._member,
            epoch.ConsumerGroupMetadataKey: self._group,
            partitions.ConsumerGroupPartitionMetadataKey: self._partition_metadata,
            target.ConsumerGroupTargetAssignmentMemberKey: self._target,
            assignment.ConsumerGroupTargetAssignmentMetadataKey: self._assignment_epoch,
            current.ConsumerGroupCurrentMemberAssignmentKey: self._current,
            regex.ConsumerGroupRegularExpressionKey: self._regex,
        }

    def _find(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _find_or_create(self, group_id: str) -> ConsumerGroup:
        """Return the group; it replaces a classic one, which was empty or has been converted."""
        group = self._find(group_id)
        if group is None:
            group = self._groups[group_id] = ConsumerGroup(group_id)
        return group

    def _member(
        self,
        key: metadata.ConsumerGroupMemberMetadataKey,
        value: metadata.ConsumerGroupMemberMetadataValue | None,
        position: RecordPosition,
    ) -> None:
        if value is None:
            group = self._find(key.group_id)
            if group is not None:
                group.remove_member(key.member_id)
            return
        group = self._find_or_create(key.group_id)
        member = group.members.get(key.member_id, ConsumerGroupMember(key.member_id))
        group.put_member(
            replace(
                member,
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                subscribed_topics=frozenset(value.subscribed_topic_names),
                subscribed_regex=value.subscribed_topic_regex or "",
                server_assignor=value.server_assignor,
                classic=value.classic_member_metadata,
            )
        )

    def _group(
        self,
        key: epoch.ConsumerGroupMetadataKey,
        value: epoch.ConsumerGroupMetadataValue | None,
        position: RecordPosition,
    ) -> None:
        if value is None:
            if self._find(key.group_id) is not None:
                del self._groups[key.group_id]
            return
        group = self._find_or_create(key.group_id)
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash

    def _partition_metadata(
        self, key: partitions.ConsumerGroupPartitionMetadataKey, value: object, position: RecordPosition
    ) -> None:
        group = self._find(key.group_id)
        if group is not None:
            group.has_partition_metadata = value is not None

    def _target(
        self,
        key: target.ConsumerGroupTargetAssignmentMemberKey,
        value: target.ConsumerGroupTargetAssignmentMemberValue | None,
        position: RecordPosition,
    ) -> None:
        if value is not None:
            self._find_or_create(key.group_id).target[key.member_id] = read_target(value)
        elif (group := self._find(key.group_id)) is not None:
            group.target.pop(key.member_id, None)

    def _assignment_epoch(
        self,
        key: assignment.ConsumerGroupTargetAssignmentMetadataKey,
        value: assignment.ConsumerGroupTargetAssignmentMetadataValue | None,
        position: RecordPosition,
    ) -> None:
        group = self._find(key.group_id)
        if value is not None:
            group = group or self._find_or_create(key.group_id)
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp

    def _current(
        self,
        key: current.ConsumerGroupCurrentMemberAssignmentKey,
        value: current.ConsumerGroupCurrentMemberAssignmentValue | None,
        position: RecordPosition,
    ) -> None:
        group = self._find(key.group_id)
        if value is not None:
            group = group or self._find_or_create(key.group_id)
            member = group.members.get(key.member_id, ConsumerGroupMember(key.member_id))
            group.put_member(
                replace(
                    member,
                    member_epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=read_state(value.state),
                    assigned=read_assigned(value.assigned_partitions, value.member_epoch),
                    revoking=read_assigned(value.partitions_pending_revocation, value.member_epoch),
                )
            )
        elif group is not None and (held := group.members.get(key.member_id)) is not None:
            group.put_member(
                replace(
                    held,
                    member_epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    state=MemberState.STABLE,
                    assigned={},
                    revoking={},
                )
            )

    def _regex(
        self,
        key: regex.ConsumerGroupRegularExpressionKey,
        value: regex.ConsumerGroupRegularExpressionValue | None,
        position: RecordPosition,
    ) -> None:
        if value is not None:
            resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            self._find_or_create(key.group_id).regexes[key.regular_expression] = resolved
        elif (group := self._find(key.group_id)) is not None:
            group.regexes.pop(key.regular_expression, None)
