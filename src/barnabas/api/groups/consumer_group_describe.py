"""ConsumerGroupDescribe (69), v0-v1: consumer groups, their members and assignments (KIP-848).

v1: the type of each member (KIP-1099).
Errors, per group: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, TOPIC_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND, those
of all coordinators; UNSUPPORTED_VERSION for all if the protocol is disabled.
"""

from barnabas.api.authorization import ask_authorizer, authorized_operations, filter_allowed, require
from barnabas.api.context import RequestContext
from barnabas.api.groups.consumer_group_heartbeat import check_consumer_protocol
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def error_response(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[_error_group(group_id, error) for group_id in request.group_ids]
    )


@serves(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, 0, 1, error_response=error_response)
async def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    check_consumer_protocol(context)
    names = await context.compute(dict.fromkeys, request.group_ids)
    await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.GROUP, names)
    groups = [await _describe(context, request, group_id) async for group_id in context.each(names)]
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest, group_id: str
) -> DescribedGroup:
    try:
        await require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = await context.broker.groups.query(
            group_id, lambda shard, now_ms: shard.consumer.describe(group_id)
        )
    except KafkaError as error:
        return _error_group(group_id, error)
    if not await _sees_topics(context, group):
        message = (
            "The group has members that subscribe to topics which the client is not authorized to describe."
        )
        return _error_group(group_id, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message))
    if request.include_authorized_operations:
        group.authorized_operations = await authorized_operations(context, ResourceType.GROUP, group_id)
    return group


async def _sees_topics(context: RequestContext, group: DescribedGroup) -> bool:
    """Return whether the principal may describe all topics of the members' subscriptions and assignments."""
    names = {name for member in group.members for name in member.subscribed_topic_names}
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            names |= {topic.topic_name for topic in assignment.topic_partitions}
    return await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names) == names


def _error_group(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
