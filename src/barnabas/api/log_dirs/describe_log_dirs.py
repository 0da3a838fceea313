"""DescribeLogDirs (35), v0-v5: the replicas in each log directory, their sizes, and the free space (KIP-113).

v1 throttles after the response, v2 is flexible, v3 has a top-level error, v4 the size of the volume (KIP-827), v5
cordoned directories (KIP-1066).

Errors: CLUSTER_AUTHORIZATION_FAILED at the top; KAFKA_STORAGE_ERROR for a directory that is offline.
"""

from collections.abc import Collection, Iterable

from barnabas.api.authorization import require_cluster
from barnabas.api.context import BrokerContext, RequestContext
from barnabas.api.listed_topics import is_listed
from barnabas.api.registry import serves
from barnabas.base.ids import TopicPartition
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

#: The lag of a replica that no partition of this broker uses.
UNKNOWN_LAG = -1


def error_response(request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    """Return the error at the top; before v3 there is no field for it."""
    return DescribeLogDirsResponse(error_code=error.code)


@serves(DescribeLogDirsRequest, DescribeLogDirsResponse, 0, 5, error_response=error_response)
async def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe every directory and its requested replicas; null requests all."""
    await require_cluster(context, AclOperation.DESCRIBE)
    directories = context.broker.replicas.log_manager.directories
    requested = await _requested(context, request, directories)
    return DescribeLogDirsResponse(
        results=[await _describe(context, directory, requested) for directory in directories]
    )


async def _requested(
    context: RequestContext, request: DescribeLogDirsRequest, directories: Iterable[LogDirectory]
) -> Collection[TopicPartition]:
    if request.topics is not None:
        return await context.compute(_named_partitions, request.topics)
    partitions = (tp for directory in directories for tp in (*directory.logs, *directory.futures))
    return dict.fromkeys([tp async for tp in context.each(partitions) if is_listed(context, tp.topic)])


def _named_partitions(topics: Iterable[DescribableLogDirTopic]) -> Collection[TopicPartition]:
    return {TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions}


async def _describe(
    context: RequestContext, directory: LogDirectory, requested: Collection[TopicPartition]
) -> DescribeLogDirsResult:
    broker = context.broker
    path = str(directory.path)
    try:
        volume = None if directory.failure is not None else directory.volume()
    except OSError:
        volume = None
    if volume is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=await _topics(context, directory, requested),
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        is_cordoned=broker.replicas.log_manager.is_cordoned(directory),
    )


async def _topics(
    context: RequestContext, directory: LogDirectory, requested: Collection[TopicPartition]
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for logs, is_future in ((directory.logs, False), (directory.futures, True)):
        async for name in context.each(requested):
            log = logs.get(name)
            if log is not None:
                topic = topics.setdefault(name.topic, DescribeLogDirsTopic(name=name.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(
                        partition_index=name.partition,
                        partition_size=log.size_bytes,
                        offset_lag=_lag(context.broker, name, log, is_future=is_future),
                        is_future_key=is_future,
                    )
                )
    return list(topics.values())


def _lag(broker: BrokerContext, tp: TopicPartition, log: PartitionLog, *, is_future: bool) -> int:
    """Return how far the log end offset is behind the high watermark, or a future replica's behind the log in use."""
    partition = broker.replicas.find(*tp)
    if partition is None:
        return UNKNOWN_LAG
    if is_future:
        return partition.log.log_end_offset - log.log_end_offset
    return max(partition.log.high_watermark - log.log_end_offset, 0)
