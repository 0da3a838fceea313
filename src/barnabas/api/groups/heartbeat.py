"""Heartbeat (12), v0-v4: a member of a classic group is there, and is told when to join anew.

v3: static members (KIP-345).
Errors: INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
REBALANCE_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR; never COORDINATOR_LOAD_IN_PROGRESS.
"""

from barnabas.api.context import RequestContext
from barnabas.api.groups.checks import check_member_request
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def refuse(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    """The error at the top; while the coordinator is being loaded there is none: its members are all there."""
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)


@serves(HeartbeatRequest, HeartbeatResponse, 0, 4, refuse=refuse)
async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Tell the group's coordinator."""
    check_member_request(context, request.group_id)
    response: HeartbeatResponse = await context.node.groups.ask(
        request.group_id, lambda shard, step, pending: shard.heartbeat(step, pending, request)
    )
    return response
