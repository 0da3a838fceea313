"""ListOffsets (2), v1-v11: the offset for a time, or for one of the markers below.

v2: isolation level.  v4: leader epochs (KIP-320).  v7: MAX_TIMESTAMP (KIP-734).  v8: EARLIEST_LOCAL (KIP-405).
v9: LATEST_TIERED (KIP-1005).  v10: timeout (KIP-1075).  v11: EARLIEST_PENDING_UPLOAD (KIP-1023).
Errors, per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, INVALID_REQUEST for a partition named twice or an unknown isolation
level, UNSUPPORTED_VERSION for a marker that the version does not know.
"""

from collections.abc import Container

from barnabas.api.authorization import refused_names
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.log.timestamps import Search, TimestampOffset
from barnabas.replication.partition import Partition
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.wire.records.compression import Compression

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6

#: marker -> the first version of the API that knows it
MARKERS = {
    LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11,
}  # fmt: skip

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONSUMER_REPLICA_ID = -1
UNKNOWN = TimestampOffset(timestamp_ms=-1, offset=-1, leader_epoch=-1)


def refuse(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    """Every partition, in error."""
    return ListOffsetsResponse(topics=[_refused_topic(topic, error) for topic in request.topics])


@serves(ListOffsetsRequest, ListOffsetsResponse, 1, 11, refuse=refuse)
async def handle(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up each partition for itself; one that is asked for twice is refused once."""
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        message = f"Isolation level {request.isolation_level} is unknown: 0 and 1 (committed) are known."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    names = {topic.name for topic in request.topics}
    refused = await refused_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    response = ListOffsetsResponse()
    async for topic in context.each(request.topics):
        if topic.name in refused:
            response.topics.append(_refused_topic(topic, refused[topic.name]))
    wanted = await context.compute(_by_partition, request, refused)
    async for name, partitions in context.each(wanted.items()):
        asked_for = context.each(partitions.values())
        answers = [await _answer(context, request, name, asked) async for asked in asked_for]
        response.topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
    return response


def _by_partition(
    request: ListOffsetsRequest, refused: Container[str]
) -> dict[str, dict[int, list[ListOffsetsPartition]]]:
    wanted: dict[str, dict[int, list[ListOffsetsPartition]]] = {}
    for topic in request.topics:
        if topic.name not in refused:
            partitions = wanted.setdefault(topic.name, {})
            for asked in topic.partitions:
                partitions.setdefault(asked.partition_index, []).append(asked)
    return wanted


async def _answer(
    context: RequestContext, request: ListOffsetsRequest, topic: str, wishes: list[ListOffsetsPartition]
) -> ListOffsetsPartitionResponse:
    index = wishes[0].partition_index
    try:
        if len(wishes) > 1:
            message = f"{topic}-{index} is asked for more than once."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        return await _look_up(context, request, topic, wishes[0])
    except KafkaError as error:
        return _refused(index, error)


async def _look_up(
    context: RequestContext, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if asked.timestamp < 0 and context.api_version < MARKERS.get(asked.timestamp, 2**15):
        message = f"ListOffsets version {context.api_version} does not know the marker {asked.timestamp}."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    partition = context.node.replicas.partition(topic, asked.partition_index)
    partition.check_leader(asked.current_leader_epoch)
    found = await _find(context, partition, request, asked.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


async def _find(
    context: RequestContext, partition: Partition, request: ListOffsetsRequest, timestamp: int
) -> TimestampOffset:
    log = partition.log
    if request.replica_id != CONSUMER_REPLICA_ID:
        bound = log.log_end_offset
    else:
        bound = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    if timestamp == LATEST:
        return TimestampOffset(-1, bound, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest_offset()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN  # nothing is tiered here
    search = log.search_max_timestamp() if timestamp == MAX_TIMESTAMP else log.search_timestamp(timestamp)
    found = await _finish(context, partition, search)
    return found if found is not None and found.offset < bound else UNKNOWN


async def _finish(context: RequestContext, partition: Partition, search: Search) -> TimestampOffset | None:
    """Search in turns; large batches are unpacked in the worker's thread.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER when the partition goes meanwhile.
    """
    body: bytes | None = None
    while True:
        try:
            packed = search.send(body)
        except StopIteration as found:
            return found.value  # type: ignore[no-any-return]
        if packed is None or packed.header.compression is Compression.NONE:
            body = None if packed is None else packed.unpack()
            await context.checkpoint()
        else:
            body = await context.node.worker.call(packed.unpack)
        if context.node.replicas.find(*partition.log.topic_partition) is not partition:
            context.node.replicas.partition(*partition.log.topic_partition)  # raises where there is none
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition.log.topic_partition} was made anew."
            )
        partition.check_leader()


def _refused_topic(topic: ListOffsetsTopic, error: KafkaError) -> ListOffsetsTopicResponse:
    answers = [_refused(asked.partition_index, error) for asked in topic.partitions]
    return ListOffsetsTopicResponse(name=topic.name, partitions=answers)


def _refused(index: int, error: KafkaError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
