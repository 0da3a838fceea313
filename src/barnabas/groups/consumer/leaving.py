"""Members that leave, expire, or are removed."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.joining import known_static_member
from barnabas.groups.consumer.member import STATIC_LEAVE_EPOCH, Assigned, ConsumerGroupMember
from barnabas.groups.consumer.records import (
    append_current,
    append_group_epoch,
    append_member_tombstones,
    append_regex,
)
from barnabas.groups.consumer.subscriptions import metadata_hash
from barnabas.groups.consumer.timers import cancel_timers
from barnabas.groups.rebalance_history import RebalanceHistory
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import MemberIdentity, MemberResponse


class MemberToRemove(NamedTuple):
    member: ConsumerGroupMember
    reason: str  #: of the client (KIP-800)


def remove_members(
    result: CoordinatorResult,
    group: ConsumerGroup,
    members: Collection[ConsumerGroupMember],
    image: MetadataImage,
    history: RebalanceHistory,
) -> None:
    """Remove members; a new epoch assigns their partitions to others."""
    member_ids = dict.fromkeys(member.member_id for member in members)
    for member_id in member_ids:
        append_member_tombstones(result, group.group_id, member_id)
        cancel_timers(result, group, member_id)
    left = [member for member in group.members.values() if member.member_id not in member_ids]
    patterns = {member.subscribed_regex for member in left}
    for pattern in sorted(group.regexes.keys() - patterns):
        append_regex(result, group.group_id, pattern, None)
    regexes = {pattern: resolved for pattern, resolved in group.regexes.items() if pattern in patterns}
    append_group_epoch(result, group.group_id, group.epoch + 1, metadata_hash(left, regexes, image))
    history.set_epoch(group.group_id, group.epoch + 1)
    if not left:
        history.set_assignments(group.group_id, (), 0)
        history.complete(group.group_id, result.now_ms)


def leaving_members(
    group: ConsumerGroup, identities: list[MemberIdentity]
) -> tuple[dict[str, MemberToRemove], list[MemberResponse]]:
    """Return the members that a LeaveGroup removes, and the response to each identity; an instance id suffices."""
    leaving: dict[str, MemberToRemove] = {}
    responses = []
    for identity in identities:
        code = ErrorCode.NONE
        try:
            member = _find_member(group, identity)
            leaving[member.member_id] = MemberToRemove(member, identity.reason or "")
        except KafkaError as error:
            code = error.code
        responses.append(
            MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
            )
        )
    return leaving, responses


def _find_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    earlier = group.static_member(identity.group_instance_id)
    member_id = identity.member_id or (earlier.member_id if earlier is not None else "")
    return known_static_member(group, member_id, identity.group_instance_id)


def suspend_static_member(
    result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember
) -> None:
    """Keep the assignment of a static member that will return, until its session expires."""
    away = replace(
        member,
        member_epoch=STATIC_LEAVE_EPOCH,
        assigned=_with_epoch_zero(member.assigned),
        revoking={},
    )
    append_current(result, group.group_id, away)


def _with_epoch_zero(assigned: Assigned) -> Assigned:
    """Set the assignment epochs to 0, so that a returning static member may commit with any epoch."""
    return {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in assigned.items()}
