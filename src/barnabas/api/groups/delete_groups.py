"""DeleteGroups (42), v0-v2: delete groups without members, with their committed offsets.

Errors, per group: GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, and coordinator errors.
"""

from typing import Any

from barnabas.api.audit import Results
from barnabas.api.authorization import ask_authorizer, require
from barnabas.api.context import RequestContext
from barnabas.api.groups.topic_slices import SLICE_PARTITIONS_MAX
from barnabas.api.registry import serves
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.shard import DeletedPart, GroupShard
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def error_response(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_error_result(group_id, error) for group_id in request.groups_names])


def audit(_request: DeleteGroupsRequest, response: DeleteGroupsResponse) -> Results:
    return ((f"group/{group.group_id}", group.error_code, None) for group in response.results)


@serves(DeleteGroupsRequest, DeleteGroupsResponse, 0, 2, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    names = await context.compute(dict.fromkeys, request.groups_names)
    await ask_authorizer(context, AclOperation.DELETE, ResourceType.GROUP, names)
    results = [await _delete(context, group_id) async for group_id in context.each(names)]
    return DeleteGroupsResponse(results=results)


async def _delete(context: RequestContext, group_id: str) -> DeletableGroupResult:
    try:
        await require(context, AclOperation.DELETE, ResourceType.GROUP, group_id)
        before = await _delete_in_parts(context, group_id)
    except KafkaError as error:
        return _error_result(group_id, error)
    for key, value in sorted(before.items(), key=lambda item: item[0] != "type"):
        context.record_change(f"group/{group_id}", key, value, None)
    return DeletableGroupResult(group_id=group_id)


async def _delete_in_parts(context: RequestContext, group_id: str) -> dict[str, Any]:
    """Delete a group; return the audit's view of it."""
    groups = context.broker.groups
    before: dict[str, Any] = {}

    def delete_part(shard: GroupShard, result: CoordinatorResult, pending: Pending[DeletedPart]) -> None:
        shard.delete_group(result, pending, group_id, SLICE_PARTITIONS_MAX)

    with groups.runner(group_id).shard.deletion(group_id):
        while True:
            part = await groups.handle_request(group_id, delete_part)
            before |= part.view
            if part.is_last:
                return before
            await context.checkpoint()


def _error_result(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error.code)
