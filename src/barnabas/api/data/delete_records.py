"""DeleteRecords (21), v0-v2: raise the log start offset (KIP-107).

Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for topics that are only compacted, INVALID_TOPIC_EXCEPTION for internal topics,
REQUEST_TIMED_OUT if an in-sync replica still has the records.
"""

import asyncio
from typing import NamedTuple

from barnabas.api.audit import Results
from barnabas.api.authorization import ask_authorizer, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.replication.partition import Partition
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
    """Raise the start of each log, and wait for the in-sync replicas.

    Segments are deleted by the next retention check of each broker.
    """
    requested = await context.compute(_offsets, request)
    await ask_authorizer(context, AclOperation.DELETE, ResourceType.TOPIC, requested)
    topics: list[DeleteRecordsTopicResult] = []
    waits: list[_Wait] = []
    async for name, offsets in context.each(requested.items()):
        partitions = context.each(offsets.items())
        results = [await _delete(context, name, index, offset, waits) async for index, offset in partitions]
        topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    if waits:
        await _wait(waits, request.timeout_ms)
    return DeleteRecordsResponse(topics=topics)


def _offsets(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Return the offset for each partition; of duplicates the last counts."""
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = requested.setdefault(topic.name, {})
        offsets |= {partition.partition_index: partition.offset for partition in topic.partitions}
    return requested


class _Wait(NamedTuple):
    """A deletion that followers have not copied yet."""

    partition: Partition
    deleted: "asyncio.Future[None]"
    result: DeleteRecordsPartitionResult


async def _wait(waits: list[_Wait], timeout_ms: int) -> None:
    """Wait until the in-sync replicas have deleted the records, and complete the results."""
    await asyncio.wait([each.deleted for each in waits], timeout=max(0, timeout_ms) / 1000)
    for partition, deleted, result in waits:
        result.low_watermark = partition.low_watermark
        if not deleted.done():
            deleted.cancel()
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        elif isinstance(error := deleted.exception(), KafkaError):
            result.low_watermark, result.error_code = UNKNOWN_LOW_WATERMARK, error.code


async def _delete(
    context: RequestContext, topic: str, index: int, offset: int, waits: list[_Wait]
) -> DeleteRecordsPartitionResult:
    try:
        await require(context, AclOperation.DELETE, ResourceType.TOPIC, topic)
        if topic in INTERNAL_TOPICS:
            message = f"Topic '{topic}' is internal: its records cannot be deleted."
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        partition = context.broker.replicas.partition(topic, index)
        partition.check_leader()
        if not partition.log.config.is_deleted:
            message = f"Topic '{topic}' is compacted only: its cleanup.policy must include 'delete'."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
        before = partition.log.log_start_offset
        start_offset = partition.delete_records(offset)
        key = f"partition {index} log start offset"
        context.record_change(f"topic/{topic}", key, before, partition.log.log_start_offset)
    except KafkaError as error:
        return _error_result(index, error)
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.low_watermark)
    if deleted := partition.when_deleted(start_offset):
        waits.append(_Wait(partition, deleted, result))
    return result


def _error_result(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=UNKNOWN_LOW_WATERMARK, error_code=error.code
    )
