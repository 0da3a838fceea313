"""DescribeRebalances (32006), v0: why a group rebalanced, how long it took and what was assigned, the latest first.

An API of Barnabas. The coordinator keeps the last hundred rebalances of each group in memory; they are lost when it
stops or another broker becomes the coordinator. Topics that the principal may not describe are left out of assignments.

Errors: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, those of all coordinators.
"""

from barnabas.api.authorization import filter_allowed, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.groups.rebalance_history import GroupMember, Rebalance
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.barnabas_messages.describe_rebalances import (
    AssignedTopic,
    DescribedRebalance,
    DescribedRebalanceEvent,
    DescribedRebalanceMember,
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
    MemberAssignment,
)
from barnabas.wire.errors import ErrorCode, KafkaError


def error_response(_request: DescribeRebalancesRequest, error: KafkaError) -> DescribeRebalancesResponse:
    return DescribeRebalancesResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeRebalancesRequest, DescribeRebalancesResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: DescribeRebalancesRequest) -> DescribeRebalancesResponse:
    group_id = request.group_id
    await require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    group, rebalances = await context.broker.groups.query(
        group_id, lambda shard, now_ms: shard.describe_rebalances(group_id)
    )
    return DescribeRebalancesResponse(
        group_type=group.group_type,
        group_state=group.state_name,
        rebalances=[await _described(context, rebalance) async for rebalance in context.each(rebalances)],
    )


async def _described(context: RequestContext, rebalance: Rebalance) -> DescribedRebalance:
    completed_ms = rebalance.completed_ms
    topics = {topic for assigned in rebalance.assignments.values() for topic in assigned}
    visible = await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
    return DescribedRebalance(
        group_type=rebalance.group_type,
        status=rebalance.status,
        epoch=rebalance.epoch,
        started_ms=rebalance.started_ms,
        completed_ms=-1 if completed_ms is None else completed_ms,
        events_count=rebalance.events_count,
        events=[
            DescribedRebalanceEvent(event.timestamp_ms, event.kind, event.reason, _member(event.member))
            for event in rebalance.events
        ],
        members_count=rebalance.members_count,
        assignments=[
            MemberAssignment(
                _member(member),
                [
                    AssignedTopic(topic, list(partitions))
                    for topic, partitions in topics.items()
                    if topic in visible
                ],
            )
            for member, topics in rebalance.assignments.items()
        ],
    )


def _member(member: GroupMember) -> DescribedRebalanceMember:
    return DescribedRebalanceMember(*member)
