"""DeleteRecords (21), v0-v2: raise the log start offset (KIP-107).

Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for topics that are only compacted, INVALID_TOPIC_EXCEPTION for internal topics.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.topics import INTERNAL_TOPICS
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_LOW_WATERMARK = -1


def error_response(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _error_result(partition.partition_index, error) for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def audit(_request: DeleteRecordsRequest, response: DeleteRecordsResponse) -> Results:
    for topic in response.topics:
        for partition in topic.partitions:
            yield f"topic/{topic.name}", partition.error_code, None


@serves(DeleteRecordsRequest, DeleteRecordsResponse, 0, 2, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Raise the start of each log; segments are deleted by the next retention check."""
    requested = await context.compute(_offsets, request)
    topics = []
    async for name, offsets in context.each(requested.items()):
        partitions = context.each(offsets.items())
        results = [_delete(context, name, index, offset) async for index, offset in partitions]
        topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _offsets(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Return the offset for each partition; of duplicates the last counts."""
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = requested.setdefault(topic.name, {})
        offsets |= {partition.partition_index: partition.offset for partition in topic.partitions}
    return requested


def _delete(context: RequestContext, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        require(context, AclOperation.DELETE, ResourceType.TOPIC, topic)
        if topic in INTERNAL_TOPICS:
            message = f"Topic '{topic}' is internal: its records cannot be deleted."
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        partition = context.broker.replicas.partition(topic, index)
        partition.check_leader()
        if not partition.log.config.is_deleted:
            message = f"Topic '{topic}' is compacted only: its cleanup.policy must include 'delete'."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
        before = partition.log.log_start_offset
        low_watermark = partition.delete_records(offset)
        key = f"partition {index} log start offset"
        context.record_change(f"topic/{topic}", key, before, partition.log.log_start_offset)
    except KafkaError as error:
        return _error_result(index, error)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _error_result(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=UNKNOWN_LOW_WATERMARK, error_code=error.code
    )
