"""ListGroups (16), v0-v5: the groups that this broker coordinates.

v4: filter by state (KIP-518).  v5: filter by type (KIP-848).
Principals with DESCRIBE on the cluster see all groups, others those that they may describe.
Errors: COORDINATOR_LOAD_IN_PROGRESS.
"""

from barnabas.api.authorization import allowed, allowed_cluster, ask_authorizer
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.groups.listing import lower_names
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def error_response(request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


@serves(ListGroupsRequest, ListGroupsResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states = await context.compute(lower_names, request.states_filter)
    types = await context.compute(lower_names, request.types_filter)
    by_shard: list[list[ListedGroup]] = await context.broker.groups.query_all(
        lambda shard, now_ms: shard.list_groups(states, types), context.checkpoint
    )
    sees_all = await allowed_cluster(context, AclOperation.DESCRIBE)
    if not sees_all:
        names = (group.group_id for groups in by_shard for group in groups)
        await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.GROUP, names)
    groups = [
        group
        for groups in by_shard
        async for group in context.each(groups)
        if sees_all or await allowed(context, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
    ]
    return ListGroupsResponse(groups=groups)
