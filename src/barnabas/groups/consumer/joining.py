"""The member of a heartbeat: a known one, a new one, or a static one that returns."""

from dataclasses import replace

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Assigned, ConsumerGroupMember
from barnabas.groups.consumer.records import (
    append_current,
    append_member,
    append_member_tombstones,
    append_target,
)
from barnabas.groups.consumer.timers import cancel_timers
from barnabas.wire.errors import ErrorCode, KafkaError


def check_size(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Check the maximum size of the group.

    :raises KafkaError: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {size_max} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def dynamic_member(group: ConsumerGroup, member_id: str, *, creates: bool) -> ConsumerGroupMember:
    """Return the member with an id; a new one if it joins.

    :raises KafkaError: UNKNOWN_MEMBER_ID.
    """
    if creates and member_id not in group.members:
        return ConsumerGroupMember(member_id)
    return group.member(member_id)


def joining_static_member(
    result: CoordinatorResult, group: ConsumerGroup, member_id: str, instance_id: str, *, is_classic: bool
) -> ConsumerGroupMember:
    """Return the member that joins with an instance id; it takes over the assignment of its predecessor.

    :raises KafkaError: UNRELEASED_INSTANCE_ID if its predecessor has not left.
    """
    earlier = group.static_member(instance_id)
    if earlier is None:
        return dynamic_member(group, member_id, creates=True)
    is_consumer = not (is_classic or earlier.uses_classic_protocol)
    if is_consumer and earlier.member_epoch != STATIC_LEAVE_EPOCH:
        message = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
            f"id is owned by member {earlier.member_id}, which has not left."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    member = replace(earlier, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    _replace(result, group, earlier, member)
    return member


def _replace(
    result: CoordinatorResult, group: ConsumerGroup, earlier: ConsumerGroupMember, member: ConsumerGroupMember
) -> None:
    append_member_tombstones(result, group.group_id, earlier.member_id)
    append_member(result, group.group_id, member)
    append_target(result, group.group_id, member.member_id, group.target.get(earlier.member_id, {}))
    append_current(result, group.group_id, member)
    cancel_timers(result, group, earlier.member_id)


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerGroupMember:
    """Return the member with an instance id, if its member id matches.

    :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def check_epoch(member: ConsumerGroupMember, epoch: int, owned: Partitions | None) -> None:
    """Check the member epoch; the previous one is accepted if the member may have missed a response.

    :raises KafkaError: FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch > member.member_epoch:
        message = (
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
        )
    elif epoch == member.previous_epoch and _is_part_of(owned, member.assigned):
        return  # it has missed the response with its new epoch
    else:
        message = (
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
        )
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_part_of(owned: Partitions | None, assigned: Assigned) -> bool:
    if owned is None:
        return False
    return all(indexes <= assigned.get(topic_id, {}).keys() for topic_id, indexes in owned.items())
