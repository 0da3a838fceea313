"""SyncGroup (14), v0-v5: get the assignment of a member; the leader sends all assignments.

v3: static members (KIP-345).  v5: the protocol is sent and checked (KIP-559).
Errors: INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS, and coordinator errors.
"""

from barnabas.api.context import RequestContext
from barnabas.api.groups.checks import check_member_request
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def error_response(request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)


@serves(SyncGroupRequest, SyncGroupResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Pass the request to the group's coordinator, which may wait for the leader."""
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        message = "Protocol type and name are required since version 5."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    await check_member_request(context, request.group_id)
    response: SyncGroupResponse = await context.broker.groups.handle_request(
        request.group_id, lambda shard, result, pending: shard.sync_group(result, pending, request)
    )
    return response
