"""Who sends a heartbeat or joins: a member that is there, a new one, a static one that comes back."""

from dataclasses import replace
from random import Random

from barnabas.base.ids import uuid_to_text
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


def new_member_id(rng: Random) -> str:
    """An id for a member that has none, in the form of Kafka's; it never begins like an option of a tool."""
    while (text := uuid_to_text(rng.randbytes(16))).startswith("-"):
        pass
    return text


def check_size(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse one member too many.

    :raises KafkaError: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {size_max} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def dynamic_member(group: ConsumerGroup, member_id: str, *, creates: bool) -> ConsumerGroupMember:
    """The member with an id, perhaps a new one.

    :raises KafkaError: UNKNOWN_MEMBER_ID.
    """
    if creates and member_id not in group.members:
        return ConsumerGroupMember(member_id)
    return group.member(member_id)


def joining_static_member(
    step: CoordinatorResult, group: ConsumerGroup, member_id: str, instance_id: str, *, is_classic: bool
) -> ConsumerGroupMember:
    """The member that an instance id stands for from now on: it takes over what its predecessor had.

    :raises KafkaError: UNRELEASED_INSTANCE_ID while its predecessor has not left.
    """
    earlier = group.static_member(instance_id)
    if earlier is None:
        return dynamic_member(group, member_id, creates=True)
    is_consumer = not (is_classic or earlier.speaks_classic)
    if is_consumer and earlier.member_epoch != STATIC_LEAVE_EPOCH:
        message = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
            f"id is owned by member {earlier.member_id}, which has not left."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    member = replace(earlier, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    _replace(step, group, earlier, member)
    return member


def _replace(
    step: CoordinatorResult, group: ConsumerGroup, earlier: ConsumerGroupMember, member: ConsumerGroupMember
) -> None:
    append_member_tombstones(step, group.group_id, earlier.member_id)
    append_member(step, group.group_id, member)
    append_target(step, group.group_id, member.member_id, group.target.get(earlier.member_id, {}))
    append_current(step, group.group_id, member)
    cancel_timers(step, group, earlier.member_id)


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerGroupMember:
    """The member that an instance id stands for, if that is who asks.

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
    """Refuse an epoch that is not the member's, or its last one while it has learnt of nothing since.

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
        return  # it has not got the answer that told it
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
