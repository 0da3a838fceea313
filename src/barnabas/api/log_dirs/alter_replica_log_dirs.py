"""AlterReplicaLogDirs (34), v0-v2: move replicas to other log directories of this broker (KIP-113).

The response means that a move has begun; DescribeLogDirs returns its progress. A replica that does not exist yet will
be created in the requested directory. v1 throttles after the response, v2 is flexible.

Errors, per partition: CLUSTER_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION for a name that is too long for the
directory of a future replica, LOG_DIR_NOT_FOUND, INVALID_REPLICA_ASSIGNMENT for a cordoned directory,
KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE where other APIs return NOT_LEADER_OR_FOLLOWER.
"""

from barnabas.api.audit import CLUSTER, Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import BrokerContext, RequestContext
from barnabas.api.registry import serves
from barnabas.base.ids import TopicPartition
from barnabas.log.log_directory import LogDirectory, fits_future_directory
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def error_response(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return _response(dict.fromkeys(_requested(request), error.code))


def audit(_request: AlterReplicaLogDirsRequest, response: AlterReplicaLogDirsResponse) -> Results:
    for topic in response.results:
        for partition in topic.partitions:
            yield CLUSTER, partition.error_code, None


@serves(
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, 0, 2, error_response=error_response, audit=audit
)
async def handle(context: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    await require_cluster(context, AclOperation.ALTER)
    requested_topics = await context.compute(_requested, request)
    codes = {
        name: await _alter(context, name, path) async for name, path in context.each(requested_topics.items())
    }
    return await context.compute(_response, codes)


def _requested(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """Return the destination of each partition; of duplicates the last counts."""
    return {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


async def _alter(context: RequestContext, tp: TopicPartition, path: str) -> ErrorCode:
    broker = context.broker
    try:
        destination = _destination(broker, tp, path)
        if broker.replicas.find(*tp) is None:
            broker.replicas.log_manager.prefer(tp, destination)
        partition = broker.replicas.partition(*tp)
        log_manager = broker.replicas.log_manager
        before = log_manager.future_directory_of(tp) or log_manager.directory_of(tp)
        broker.log_dir_moves.alter(partition, destination)
        key = f"partition {tp.partition} log dir on broker {broker.broker_id}"
        context.record_change(f"topic/{tp.topic}", key, before and str(before.path), str(destination.path))
    except KafkaError as error:
        elsewhere = error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.REPLICA_NOT_AVAILABLE if elsewhere else error.code
    return ErrorCode.NONE


def _destination(broker: BrokerContext, tp: TopicPartition, path: str) -> LogDirectory:
    """Return the log directory at `path`, if a replica may be moved to it.

    :raises KafkaError: If it may not.
    """
    if not fits_future_directory(tp):
        message = f"The name of topic '{tp.topic}' is too long for the directory of a future replica."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    log_manager = broker.replicas.log_manager
    directory = log_manager.at(path)
    if directory is None:
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"'{path}' is not one of this broker's log.dirs.")
    if directory.failure is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline.")
    if log_manager.is_cordoned(directory):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned.")
    return directory


def _response(codes: dict[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for name, code in codes.items():
        topic = topics.setdefault(name.topic, AlterReplicaLogDirTopicResult(topic_name=name.topic))
        topic.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=code)
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
