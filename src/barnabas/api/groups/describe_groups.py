"""DescribeGroups (15), v0-v6: state and members of classic groups.

v3: authorized operations (KIP-430).  v4: static members (KIP-345).  v6: an unknown group is an error (KIP-1043).
Errors, per group: GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND, and coordinator errors.
"""

from barnabas.api.authorization import ask_authorizer, authorized_operations, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_VERSION_WITH_NOT_FOUND = 6
DEAD = "Dead"


def error_response(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_error_group(group_id, error) for group_id in request.groups])


@serves(DescribeGroupsRequest, DescribeGroupsResponse, 0, 6, error_response=error_response)
async def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    names = await context.compute(dict.fromkeys, request.groups)
    await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.GROUP, names)
    groups = [await _describe(context, group_id) async for group_id in context.each(names)]
    if request.include_authorized_operations:
        async for group in context.each(groups):
            if group.error_code == ErrorCode.NONE:
                operations = await authorized_operations(context, ResourceType.GROUP, group.group_id)
                group.authorized_operations = operations
    return DescribeGroupsResponse(groups=groups)


async def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        await require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        described: DescribedGroup = await context.broker.groups.query(
            group_id, lambda shard, now_ms: shard.describe_group(group_id)
        )
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return _unknown_group(context, group_id, error)
        return _error_group(group_id, error)
    return described


def _unknown_group(context: RequestContext, group_id: str, error: KafkaError) -> DescribedGroup:
    """Return the description of an unknown group: dead, and from v6 on with an error."""
    if context.api_version < FIRST_VERSION_WITH_NOT_FOUND:
        return DescribedGroup(group_id=group_id, group_state=DEAD)
    return DescribedGroup(
        error_code=error.code, error_message=error.message, group_id=group_id, group_state=DEAD
    )


def _error_group(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(error_code=error.code, group_id=group_id)
