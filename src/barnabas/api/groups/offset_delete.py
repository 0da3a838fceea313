"""OffsetDelete (47), v0: delete offsets of topics to which no member is subscribed (KIP-496).

Errors: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; per partition: TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
"""

from collections.abc import Mapping

from barnabas.api.audit import Results
from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.groups.partition_checks import RejectedPartitions, merge, split_known_partitions
from barnabas.api.groups.topic_slices import slices
from barnabas.api.registry import serves
from barnabas.base.ids import TopicPartition
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.shard import GroupShard, offset_key
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def error_response(request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def audit(request: OffsetDeleteRequest, response: OffsetDeleteResponse) -> Results:
    yield f"group/{request.group_id}", response.error_code, None
    for topic in response.topics:
        for partition in topic.partitions:
            yield f"topic/{topic.name}", partition.error_code, None


@serves(OffsetDeleteRequest, OffsetDeleteResponse, 0, 0, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Refuse unknown and unauthorized partitions; the group's coordinator decides on the others."""
    await require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    known, refused = await split_known_partitions(context, AclOperation.READ, request.topics)
    errors = await context.compute(lambda: [_error_topic(rejected) for rejected in refused])
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    answered: list[OffsetDeleteResponseTopic] = []
    async for some_topics in context.each(slices(known)):
        answered += await _delete(context, OffsetDeleteRequest(request.group_id, some_topics))
    return OffsetDeleteResponse(topics=await context.compute(merge, errors, answered))


async def _delete(context: RequestContext, request: OffsetDeleteRequest) -> list[OffsetDeleteResponseTopic]:
    before: dict[TopicPartition, int] = {}

    def delete(shard: GroupShard, result: CoordinatorResult, pending: Pending[OffsetDeleteResponse]) -> None:
        before.update(shard.offsets.committed_in(request.group_id, request.topics))
        shard.offsets.delete(result, pending, request)

    response = await context.broker.groups.handle_request(request.group_id, delete)
    _record_deletions(context, request.group_id, before, response)
    return response.topics


def _record_deletions(
    context: RequestContext,
    group_id: str,
    before: Mapping[TopicPartition, int],
    response: OffsetDeleteResponse,
) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE:
                tp = TopicPartition(topic.name, partition.partition_index)
                context.record_change(f"group/{group_id}", offset_key(tp), before.get(tp), None)


def _error_topic(rejected: RejectedPartitions) -> OffsetDeleteResponseTopic:
    partitions = [OffsetDeleteResponsePartition(index, rejected.code) for index in rejected.indexes]
    return OffsetDeleteResponseTopic(rejected.topic.name, partitions)
