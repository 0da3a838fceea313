"""Records of consumer groups: written from groups, and read back (KIP-848)."""

from collections.abc import Iterable

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.member import Assigned, ConsumerGroupMember, MemberState
from barnabas.groups.consumer.regex import ResolvedRegex
from barnabas.wire.coordinator_records import consumer_group_current_member_assignment as current
from barnabas.wire.coordinator_records import consumer_group_target_assignment_member as target
from barnabas.wire.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.wire.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from barnabas.wire.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
)
from barnabas.wire.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from barnabas.wire.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

_STATES = {state.value for state in MemberState}


def append_member(result: CoordinatorResult, group_id: str, member: ConsumerGroupMember) -> None:
    """Append the record of a member and its subscription."""
    result.append(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topics),
            subscribed_topic_regex=member.subscribed_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=member.classic,
        ),
    )


def append_group_epoch(result: CoordinatorResult, group_id: str, epoch: int, metadata_hash: int) -> None:
    """Append a ConsumerGroupMetadata record with the new group epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    result.append(ConsumerGroupMetadataKey(group_id=group_id), value)


def append_target(result: CoordinatorResult, group_id: str, member_id: str, partitions: Partitions) -> None:
    """Append the record of a member's target."""
    topics = [
        target.TopicPartition(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in sorted(partitions.items())
    ]
    key = target.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    result.append(key, target.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def append_assignment_epoch(result: CoordinatorResult, group_id: str, epoch: int, timestamp_ms: int) -> None:
    """Append the record of the epoch of all targets."""
    result.append(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def append_current(result: CoordinatorResult, group_id: str, member: ConsumerGroupMember) -> None:
    """Append a ConsumerGroupCurrentMemberAssignment record."""
    key = current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    result.append(
        key,
        current.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def append_regex(
    result: CoordinatorResult, group_id: str, pattern: str, resolved: ResolvedRegex | None
) -> None:
    """Append the record of an expression's matches; None for an expression without subscribers."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    if resolved is None:
        result.append(key, None)
        return
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    result.append(key, value)


def append_member_tombstones(result: CoordinatorResult, group_id: str, member_id: str) -> None:
    """Append the tombstones of a member."""
    ids = {"group_id": group_id, "member_id": member_id}
    result.append(current.ConsumerGroupCurrentMemberAssignmentKey(**ids), None)
    result.append(target.ConsumerGroupTargetAssignmentMemberKey(**ids), None)
    result.append(ConsumerGroupMemberMetadataKey(**ids), None)


def append_group_tombstones(
    result: CoordinatorResult, group_id: str, member_ids: Iterable[str], patterns: Iterable[str]
) -> None:
    """Append the tombstones of a group, in an order in which nothing refers to a missing record."""
    member_ids = list(member_ids)
    for member_id in member_ids:
        key = current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        result.append(key, None)
    for member_id in member_ids:
        result.append(
            target.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        )
    result.append(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in member_ids:
        result.append(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    for pattern in patterns:
        append_regex(result, group_id, pattern, None)
    append_no_partition_metadata(result, group_id)
    result.append(ConsumerGroupMetadataKey(group_id=group_id), None)


def append_no_partition_metadata(result: CoordinatorResult, group_id: str) -> None:
    """Append the tombstone of subscribed topics, which brokers before 4.1 wrote; a hash in the group's record
    replaces it.
    """
    result.append(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def read_target(value: target.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """Return the target of a record."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def read_assigned(topics: list[current.TopicPartitions], member_epoch: int) -> Assigned:
    """Return the assignment of a record; brokers before 4.3 did not write its epochs."""
    assigned: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        assigned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return assigned


def read_state(number: int) -> MemberState:
    """Return the state of a record."""
    return MemberState(number) if number in _STATES else MemberState.UNKNOWN


def _with_epochs(assigned: Assigned) -> list[current.TopicPartitions]:
    return [
        current.TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[index] for index in sorted(epochs)],
        )
        for topic_id, epochs in sorted(assigned.items())
    ]
