"""LeaveGroup (13), v0-v5: members leave a classic group, or an administrator removes them.

v3: many members, also by their group instance ids (KIP-345).  v5: the client's reason (KIP-800).
Errors: INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, and coordinator errors; per member, before v3 at the top,
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
"""

from collections.abc import Iterator
from copy import copy

from barnabas.api.context import RequestContext
from barnabas.api.groups.checks import check_member_request
from barnabas.api.registry import serves
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

FIRST_VERSION_WITH_MANY_MEMBERS = 3

#: Members that leave before other clients are served.
LEAVING_COUNT_MAX = 500


def error_response(request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)


@serves(LeaveGroupRequest, LeaveGroupResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Pass the request to the group's coordinator; older clients name one member, whose error is at the top."""
    await check_member_request(context, request.group_id)
    has_one = context.api_version < FIRST_VERSION_WITH_MANY_MEMBERS
    if has_one:
        request.members = [MemberIdentity(member_id=request.member_id)]
    responses: list[MemberResponse] = []
    async for part in context.each(_split(request)):
        responses += await _leave(context, part)
    return (
        LeaveGroupResponse(error_code=responses[0].error_code)
        if has_one
        else LeaveGroupResponse(members=responses)
    )


def _split(request: LeaveGroupRequest) -> Iterator[LeaveGroupRequest]:
    """Split the request into requests for a limited number of members."""
    for start in range(0, max(len(request.members), 1), LEAVING_COUNT_MAX):
        part = copy(request)
        part.members = request.members[start : start + LEAVING_COUNT_MAX]
        yield part


async def _leave(context: RequestContext, request: LeaveGroupRequest) -> list[MemberResponse]:
    response: LeaveGroupResponse = await context.broker.groups.handle_request(
        request.group_id, lambda shard, result, pending: shard.leave_group(result, pending, request)
    )
    return response.members
