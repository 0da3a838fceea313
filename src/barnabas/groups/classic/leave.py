"""LeaveGroup to a classic group: from members, or from an administrator who names static members (KIP-345)."""

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.rebalance import Rebalances
from barnabas.groups.classic.timers import session_timer
from barnabas.groups.rebalance_history import EventKind
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse


def leave(
    result: CoordinatorResult, group: ClassicGroup, identities: list[MemberIdentity], rebalances: Rebalances
) -> LeaveGroupResponse:
    """Remove members, each on its own; there is one rebalance for all."""
    responses = [_leave_one(result, group, identity, rebalances) for identity in identities]
    reasons = [
        f"{identity.member_id or identity.group_instance_id} leaves; its reason: {identity.reason or 'not provided'}"
        for identity, response in zip(identities, responses, strict=True)
        if response.error_code == ErrorCode.NONE
    ]
    if reasons and not group.is_empty:
        rebalances.maybe_rebalance(result, group, "; ".join(reasons))
    return LeaveGroupResponse(members=responses)


def unknown_member_responses(identities: list[MemberIdentity]) -> LeaveGroupResponse:
    """Return the response for an unknown group."""
    return LeaveGroupResponse(
        members=[_member_response(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in identities]
    )


def _member_response(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
    )


def _leave_one(
    result: CoordinatorResult, group: ClassicGroup, identity: MemberIdentity, rebalances: Rebalances
) -> MemberResponse:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_members:
        group.remove(member_id)
        result.cancel_timer(session_timer(group.group_id, member_id))
        return _member_response(identity, ErrorCode.NONE)
    try:
        known = member_id or group.static_members.get(instance_id or "", "")
        member = group.check_member(known, instance_id)
        rebalances.record(result, group, EventKind.LEFT, member, identity.reason or "")
        rebalances.remove_member(result, group, member)
    except KafkaError as error:
        return _member_response(identity, error.code)
    return _member_response(identity, ErrorCode.NONE)
