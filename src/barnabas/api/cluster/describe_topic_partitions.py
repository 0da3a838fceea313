"""DescribeTopicPartitions (75), v0: topics in pages of limited size (KIP-966).

A limit below 1 counts as 1. Errors: INVALID_REQUEST for a cursor at a topic that is not requested, or before partition
0; per topic TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION and INVALID_TOPIC_EXCEPTION; per partition
LEADER_NOT_AVAILABLE.
"""

import itertools

from barnabas.api.authorization import ask_for_operations, authorization_errors, authorized_operations
from barnabas.api.cluster.topic_descriptions import live_leader, offline_replicas
from barnabas.api.context import RequestContext
from barnabas.api.listed_topics import is_listed
from barnabas.api.registry import serves
from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.metadata.topics import NO_LEADER, TopicImage, check_name
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)


def error_response(
    request: DescribeTopicPartitionsRequest, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name)
            for topic in request.topics
        ]
    )


@serves(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, 0, 0, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics by name, from the cursor on, until the page is full."""
    names = await context.compute(_names, context, request)
    hidden = await authorization_errors(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    count_max = context.broker.config.integer("max.request.partition.size.limit")
    left_count = max(1, min(request.response_partition_limit, count_max))
    response = DescribeTopicPartitionsResponse()
    described = (name for name in names if name not in hidden)
    await ask_for_operations(context, ResourceType.TOPIC, itertools.islice(described, left_count))
    async for name in context.each(name for name in names if name not in hidden):
        start = _start(request, name)
        if left_count <= 0:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=start)
            break
        topic = context.broker.image.topics.get(name)
        if topic is None:
            response.topics.append(await _missing(context, name))
            continue
        stop = min(topic.partition_count, start + left_count)
        indexes = range(start, stop)
        response.topics.append(await _describe(context, topic, indexes))
        left_count -= len(indexes)  # 0 for a cursor beyond the end
        if stop < topic.partition_count:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=stop)
            break
    if request.topics:
        response.topics += [_hidden(name, error) for name, error in hidden.items()]
    return response


def _names(context: RequestContext, request: DescribeTopicPartitionsRequest) -> list[str]:
    cursor = request.cursor
    requested = {topic.name for topic in request.topics}
    if cursor is not None and requested and cursor.topic_name not in requested:
        message = f"The cursor is at topic '{cursor.topic_name}', which is not requested."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if cursor is not None and cursor.partition_index < 0:
        message = f"The cursor is at partition {cursor.partition_index}: it must be 0 or more."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    names = requested or {name for name in context.broker.image.topics if is_listed(context, name)}
    return sorted(name for name in names if cursor is None or name >= cursor.topic_name)


def _start(request: DescribeTopicPartitionsRequest, name: str) -> int:
    cursor = request.cursor
    return cursor.partition_index if cursor is not None and cursor.topic_name == name else 0


def _hidden(name: str, error: KafkaError) -> DescribeTopicPartitionsResponseTopic:
    """Return the response for a topic whose existence the principal may not know."""
    return DescribeTopicPartitionsResponseTopic(error_code=error.code, name=name)


async def _missing(context: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_authorized_operations=await authorized_operations(context, ResourceType.TOPIC, name),
    )


async def _describe(
    context: RequestContext, topic: TopicImage, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_describe_partition(context, topic, index) for index in indexes],
        topic_authorized_operations=await authorized_operations(context, ResourceType.TOPIC, topic.name),
    )


def _describe_partition(
    context: RequestContext, topic: TopicImage, index: int
) -> DescribeTopicPartitionsResponsePartition:
    image = context.broker.image
    state = image.partition(topic, index)
    offline = offline_replicas(image, state)
    leader = live_leader(state, offline)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline,
    )
