"""JoinGroup (11), v0-v9: join a classic group, or rejoin it.

v1: rebalance timeout.  v4: a new member gets an id to rejoin with (KIP-394).  v5: static members (KIP-345).
v7: protocol type.  v8: the client's reason (KIP-800).  v9: the leader may skip the assignment (KIP-814).
Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, GROUP_AUTHORIZATION_FAILED, MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, REBALANCE_IN_PROGRESS, NOT_COORDINATOR, and
other coordinator errors.
"""

from barnabas.api.context import RequestContext
from barnabas.api.groups.checks import check_member_request
from barnabas.api.registry import serves
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.classic.join import Join, JoiningClient
from barnabas.groups.consumer.classic_members import ClassicMemberRejectedError
from barnabas.groups.shard import GroupShard
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: Errors of requests that did not reach the group.
NOT_LOOKED_FOR = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NOT_COORDINATOR})
FIRST_VERSION_WITHOUT_PROTOCOL_NAME = 7  #: no protocol is null from this version on; before, it is empty


def error_response(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    is_unnamed = error.code in NOT_LOOKED_FOR or isinstance(error, ClassicMemberRejectedError)
    return JoinGroupResponse(error_code=error.code, member_id="" if is_unnamed else request.member_id)


@serves(JoinGroupRequest, JoinGroupResponse, 0, 9, error_response=error_response)
async def handle(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    """Pass the request to the group's coordinator, which may wait for other members."""
    try:
        response = await _join(context, request)
    except KafkaError as error:
        response = error_response(request, error)
    if not response.protocol_name:
        response.protocol_name = None if context.api_version >= FIRST_VERSION_WITHOUT_PROTOCOL_NAME else ""
    return response


async def _join(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    await check_member_request(context, request.group_id)
    _check_session_timeout(context, request.session_timeout_ms)
    client = JoiningClient(context.client_id or "", f"/{context.connection.client_host}", context.api_version)

    def event(shard: GroupShard, result: CoordinatorResult, pending: Pending[JoinGroupResponse]) -> None:
        shard.join_group(result, Join(request, client, pending))

    return await context.broker.groups.handle_request(request.group_id, event)


def _check_session_timeout(context: RequestContext, timeout_ms: int) -> None:
    """Check the session timeout against the broker's limits.

    :raises KafkaError: INVALID_SESSION_TIMEOUT.
    """
    config = context.broker.config
    shortest_ms = config.integer("group.min.session.timeout.ms")
    longest_ms = config.integer("group.max.session.timeout.ms")
    if not shortest_ms <= timeout_ms <= longest_ms:
        message = f"A session timeout of {timeout_ms} ms is not between {shortest_ms} ms and {longest_ms} ms."
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, message)
