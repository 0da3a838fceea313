"""OffsetForLeaderEpoch (23), v2-v4: the end offset of a leader epoch, so that readers find where logs diverge
(KIP-320).

v3: replica id.
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
"""

from barnabas.api.authorization import allowed_cluster, authorization_errors
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)


def error_response(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(topics=[_error_topic(topic, error) for topic in request.topics])


@serves(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, 2, 4, error_response=error_response)
async def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up each partition on its own; refused topics come last."""
    refused: dict[str, KafkaError] = {}
    if not await allowed_cluster(context, AclOperation.CLUSTER_ACTION):  # replicas have this permission
        names = {topic.topic for topic in request.topics}
        refused = await authorization_errors(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    response = OffsetForLeaderEpochResponse()
    async for topic in context.each(request.topics):
        if topic.topic not in refused:
            partitions = context.each(topic.partitions)
            responses = [_look_up(context, topic.topic, partition) async for partition in partitions]
            response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=responses))
    async for topic in context.each(request.topics):
        if topic.topic in refused:
            response.topics.append(_error_topic(topic, refused[topic.topic]))
    return response


def _look_up(context: RequestContext, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = context.broker.replicas.partition(topic, requested.partition)
        partition.check_leader(requested.current_leader_epoch)
        partition.log.check_online()
    except KafkaError as error:
        return _error_result(requested.partition, error)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return EpochEndOffset(partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset)


def _error_topic(topic: OffsetForLeaderTopic, error: KafkaError) -> OffsetForLeaderTopicResult:
    responses = [_error_result(partition.partition, error) for partition in topic.partitions]
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=responses)


def _error_result(index: int, error: KafkaError) -> EpochEndOffset:
    return EpochEndOffset(partition=index, error_code=error.code)
