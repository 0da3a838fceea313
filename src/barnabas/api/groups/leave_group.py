"""LeaveGroup (13), v0-v5: members leave a classic group, or an administrator removes them.

v3: many members, also by their group instance ids (KIP-345).  v5: the client's reason (KIP-800).
Errors: INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, and those that say where the coordinator is; per member, before v3
at the top, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
"""

from barnabas.api.context import RequestContext
from barnabas.api.groups.checks import check_member_request
from barnabas.api.registry import serves
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

FIRST_VERSION_WITH_MANY_MEMBERS = 3


def refuse(request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    """The error at the top."""
    return LeaveGroupResponse(error_code=error.code)


@serves(LeaveGroupRequest, LeaveGroupResponse, 0, 5, refuse=refuse)
async def handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Tell the group's coordinator; older clients name one member and are answered at the top."""
    check_member_request(context, request.group_id)
    has_one = context.api_version < FIRST_VERSION_WITH_MANY_MEMBERS
    if has_one:
        request.members = [MemberIdentity(member_id=request.member_id)]
    response: LeaveGroupResponse = await context.node.groups.ask(
        request.group_id, lambda shard, step, pending: shard.leave_group(step, pending, request)
    )
    return LeaveGroupResponse(error_code=response.members[0].error_code) if has_one else response
