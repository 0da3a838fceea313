"""What lies in the log directories of a broker, and moving it: to and from the messages of the protocol."""

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
    """A replica in a directory; a future one is on its way there, and lags behind the one in use."""

    size_bytes: int
    offset_lag: int  #: -1 when the broker does not know
    is_future: bool


class LogDirDescription(NamedTuple):
    """One log directory; sizes of its volume are -1 where the broker does not tell."""

    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    replicas: Mapping[TopicPartition, LogDirReplica]


def describing(partitions: Collection[TopicPartition] | None) -> DescribeLogDirsRequest:
    """The question what lies where: of those partitions, or of all."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    topics = [DescribableLogDirTopic(name, indexes) for name, indexes in _by_topic(partitions).items()]
    return DescribeLogDirsRequest(topics=topics)


def described(response: DescribeLogDirsResponse) -> list[LogDirDescription]:
    """A broker's directories.

    :raises KafkaError: When the question was refused.
    """
    check(response.error_code)
    return [_described(result) for result in response.results]


def _described(result: DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): LogDirReplica(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in result.topics
        for each in topic.partitions
    }
    error = error_for(result.error_code)
    return LogDirDescription(
        result.log_dir, error, result.total_bytes, result.usable_bytes, result.is_cordoned, replicas
    )


def moving(targets: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    """The order to bring replicas of a broker to other directories of it."""
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


def moved(response: AlterReplicaLogDirsResponse) -> dict[TopicPartition, KafkaError | None]:
    """What became of each replica; None stands for a move that has begun, or was not needed."""
    return {
        TopicPartition(topic.topic_name, each.partition_index): error_for(each.error_code)
        for topic in response.results
        for each in topic.partitions
    }


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return topics
