"""SyncGroup to a classic group: the leader sends the assignment, and each member gets its own."""

from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.rebalance import Rebalances
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.responses import synced
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.timers import await_heartbeat, sync_timer
from barnabas.groups.rebalance_history import EventKind
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_S = ClassicState


def sync(
    result: CoordinatorResult,
    group: ClassicGroup,
    request: SyncGroupRequest,
    pending: Pending[SyncGroupResponse],
    rebalances: Rebalances,
) -> None:
    """Answer with the assignment, or keep the request until the leader has sent it.

    :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
        REBALANCE_IN_PROGRESS.
    """
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    _check_protocol(group, request)
    if group.state is _S.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "The group waits for its members to join.")
    group.unsynced_members.discard(member.member_id)
    if not group.unsynced_members:
        result.cancel_timer(sync_timer(group.group_id))
    if group.state is _S.STABLE:
        result.answer(pending, synced(group, member.assignment))
        return
    _wait(result, member, pending)
    if group.leader == member.member_id:
        _assign(result, group, request, rebalances)


def _wait(result: CoordinatorResult, member: ClassicGroupMember, pending: Pending[SyncGroupResponse]) -> None:
    if member.syncing is not None:  # its connection was lost, else it would not sync again
        result.fail(
            member.syncing,
            KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "A later SyncGroup request replaced this one."),
        )
    member.syncing = pending


def _assign(
    result: CoordinatorResult, group: ClassicGroup, request: SyncGroupRequest, rebalances: Rebalances
) -> None:
    """Write the leader's assignment and answer the waiting members; members without an assignment get an empty one."""
    brought = {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments}
    assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}
    result.append(GroupMetadataKey(group=group.group_id), group_record(group, assignments))
    for member in group.members.values():
        if member.syncing is not None:
            result.answer(member.syncing, synced(group, assignments[member.member_id]))
            await_heartbeat(result, group.group_id, member)

    def restart_rebalance(instead: CoordinatorResult, error: KafkaError) -> None:
        rebalances.fail_pending_syncs(instead, group, error)
        why = f"the assignment cannot be stored: {error.message}"
        rebalances.record(instead, group, EventKind.COORDINATOR, None, why)
        rebalances.begin(instead, group, why)

    result.on_append_error = restart_rebalance


def apply_assignment(group: ClassicGroup, value: GroupMetadataValue, now_ms: int) -> bool:
    """Apply an assignment from the log; return whether this completed a rebalance."""
    for assignment in value.members:
        member = group.members[assignment.member_id]
        member.assignment = bytes(assignment.assignment)
        member.syncing = None
    if group.state is not _S.COMPLETING_REBALANCE or not value.members:
        return False
    group.transition(_S.STABLE, "the leader has assigned", now_ms)
    return True


def _check_protocol(group: ClassicGroup, request: SyncGroupRequest) -> None:
    requested = (request.protocol_type, request.protocol_name)
    for value, agreed in zip(requested, (group.protocol_type, group.protocol), strict=True):
        if value is not None and agreed is not None and value != agreed:
            message = (
                f"The group has agreed on {group.protocol_type}/{group.protocol}, "
                f"not on {requested[0]}/{requested[1]}."
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
