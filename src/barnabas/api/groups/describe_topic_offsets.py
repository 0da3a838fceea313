"""DescribeTopicOffsets (32009), v0: the committed offsets of topics, from the groups that this broker coordinates.

An API of Barnabas for other brokers: the offsets of a deleted topic go to the trash with it. No more than 20,001 with
1 MiB are returned, because more are not kept.

Errors: CLUSTER_AUTHORIZATION_FAILED; beside the offsets of other groups COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE.
"""

from barnabas.api.authorization import require_broker
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.groups.offsets.cluster_offsets import to_message
from barnabas.wire.barnabas_messages.describe_topic_offsets import (
    DescribeTopicOffsetsRequest,
    DescribeTopicOffsetsResponse,
    OffsetsOfTopic,
)
from barnabas.wire.errors import KafkaError


def error_response(_request: DescribeTopicOffsetsRequest, error: KafkaError) -> DescribeTopicOffsetsResponse:
    return DescribeTopicOffsetsResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeTopicOffsetsRequest, DescribeTopicOffsetsResponse, 0, 0, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeTopicOffsetsRequest
) -> DescribeTopicOffsetsResponse:
    await require_broker(context)
    found, error = await context.broker.cluster_offsets.here(set(request.topics), context.checkpoint)
    topics: dict[str, OffsetsOfTopic] = {}
    async for offset in context.each(found):
        of_topic = topics.setdefault(offset.topic, OffsetsOfTopic(offset.topic, []))
        of_topic.offsets.append(to_message(offset.group_id, offset.partition, offset.committed))
    return DescribeTopicOffsetsResponse(
        error_code=error.code if error is not None else 0, topics=list(topics.values())
    )
