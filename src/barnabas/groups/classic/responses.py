"""Responses to members of classic groups."""

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.wire.messages.sync_group import SyncGroupResponse


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Return the response with the present generation; the leader gets the list of members."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=_members(group) if member_id == group.leader else [],
    )


def not_joined(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return an error that names the member."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """Return the response with the assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def refuse_joining(
    result: CoordinatorResult, member: ClassicGroupMember, code: ErrorCode, member_id: str = ""
) -> None:
    """Answer the waiting JoinGroup of a member with an error."""
    if member.joining is not None:
        result.answer(member.joining, not_joined(code, member_id))
        member.joining = None


def refuse_syncing(result: CoordinatorResult, member: ClassicGroupMember, error: KafkaError) -> None:
    """Answer the waiting SyncGroup of a member with an error."""
    if member.syncing is not None:
        result.fail(member.syncing, error)
        member.syncing = None


def _members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.protocols[group.protocol or ""],
        )
        for member in group.members.values()
    ]
