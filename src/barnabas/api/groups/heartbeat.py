"""Heartbeat (12), v0-v4: a member of a classic group is alive, and learns when to rejoin.

v3: static members (KIP-345).
Errors: INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
REBALANCE_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR; never COORDINATOR_LOAD_IN_PROGRESS.
"""

from collections.abc import Awaitable

from barnabas.api.authorization import ask_authorizer, must_ask
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.groups.checks import check_member_request_now
from barnabas.api.groups.heartbeat_codec import read_request, write_response
from barnabas.api.registry import USE_HANDLER, UseHandler, serves
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def error_response(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)


def fast_path(
    context: RequestContext, frame: memoryview, position: int
) -> EncodedResponse | Awaitable[EncodedResponse] | UseHandler:
    """Read the request from its frame, and pass it to the group's coordinator.

    :raises DecodeError: If the request cannot be read.
    """
    beat = read_request(bytes(frame[position:]), context.api_version)
    if must_ask(context, AclOperation.READ, ResourceType.GROUP, (beat.group_id,)):
        return USE_HANDLER
    return _heartbeat(context, beat)


@serves(HeartbeatRequest, HeartbeatResponse, 0, 4, error_response=error_response, fast_path=fast_path)
async def handle(context: RequestContext, request: HeartbeatRequest) -> EncodedResponse:
    """Handle a decoded request: one for which the authorizer must be asked, or one for an interceptor."""
    beat = Heartbeat(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    await ask_authorizer(context, AclOperation.READ, ResourceType.GROUP, (beat.group_id,))
    response = _heartbeat(context, beat)
    return response if isinstance(response, EncodedResponse) else await response


def _heartbeat(context: RequestContext, beat: Heartbeat) -> EncodedResponse | Awaitable[EncodedResponse]:
    """Respond immediately, unless an earlier decision of the coordinator is still being written."""
    check_member_request_now(context, beat.group_id)
    runner = context.broker.groups.runner(beat.group_id)
    code = runner.write(lambda shard, result: shard.heartbeat(result, beat))
    if isinstance(code, ErrorCode):
        return EncodedResponse(*write_response(context.api_version, code))
    return _respond_later(context.api_version, code)


async def _respond_later(version: int, storing: Awaitable[ErrorCode]) -> EncodedResponse:
    try:
        code = await storing
    except KafkaError as error:
        code = error.code
    return EncodedResponse(*write_response(version, code))
