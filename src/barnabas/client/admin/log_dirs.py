"""Log directories of a broker in messages of the protocol."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.errors import check, error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class LogDirReplica(NamedTuple):
    """A replica in a directory; a future replica is being moved there, and lags behind the one in use."""

    size_bytes: int
    offset_lag: int  #: -1 when the broker does not know
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory; sizes of its volume are -1 if the broker does not return them."""

    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    replicas: Mapping[TopicPartition, LogDirReplica]


def describe_log_dirs_request(partitions: Collection[TopicPartition] | None) -> DescribeLogDirsRequest:
    """Return the request to describe those partitions, or all."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    topics = [DescribableLogDirTopic(name, indexes) for name, indexes in _by_topic(partitions).items()]
    return DescribeLogDirsRequest(topics=topics)


def parse_describe_log_dirs_response(response: DescribeLogDirsResponse) -> list[LogDirDescription]:
    """Return a broker's directories.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code)
    return [_log_dir_description(result) for result in response.results]


def _log_dir_description(result: DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): LogDirReplica(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in result.topics
        for partition in topic.partitions
    }
    error = error_for(result.error_code)
    return LogDirDescription(
        result.log_dir, error, result.total_bytes, result.usable_bytes, result.is_cordoned, replicas
    )


def alter_log_dirs_request(targets: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    """Return the request to move replicas."""
    by_path: dict[str, list[TopicPartition]] = {}
    for tp, path in targets.items():
        by_path.setdefault(path, []).append(tp)
    return AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir(
                path,
                [AlterReplicaLogDirTopic(name, indexes) for name, indexes in _by_topic(partitions).items()],
            )
            for path, partitions in by_path.items()
        ]
    )


def parse_alter_log_dirs_response(
    response: AlterReplicaLogDirsResponse,
) -> dict[TopicPartition, KafkaError | None]:
    """Return the error of each replica; None if the move has started, or was not necessary."""
    return {
        TopicPartition(topic.topic_name, partition.partition_index): error_for(partition.error_code)
        for topic in response.results
        for partition in topic.partitions
    }


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return topics
