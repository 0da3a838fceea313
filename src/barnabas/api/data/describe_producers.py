"""DescribeProducers (61), v0: the producer state of partitions (KIP-664).

Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
INVALID_TOPIC_EXCEPTION.
"""

from barnabas.api.authorization import ask_authorizer, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.topics import check_name
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def error_response(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_error_response(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


@serves(DescribeProducersRequest, DescribeProducersResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    topics: list[TopicResponse] = []
    described: set[tuple[str, int]] = set()  #: a partition that is named again is left out
    names = (topic.name for topic in request.topics)
    await ask_authorizer(context, AclOperation.READ, ResourceType.TOPIC, names)
    async for topic in context.each(request.topics):
        partitions: list[PartitionResponse] = []
        async for index in context.each(topic.partition_indexes):
            if (topic.name, index) not in described:
                described.add((topic.name, index))
                partitions.append(await _describe(context, topic.name, index))
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


async def _describe(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    try:
        await require(context, AclOperation.READ, ResourceType.TOPIC, topic)
        check_name(topic)
        partition = context.broker.replicas.partition(topic, index)
    except KafkaError as error:
        return _error_response(index, error)
    producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.current_txn_start_offset,
        )
        async for producer in context.each(partition.log.producers.states.active)
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _error_response(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message or None
    )
