"""Log directories: building requests and parsing responses."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import log_dirs
from barnabas.client.admin.log_dirs import LogDirReplica
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

A0, A1, B2 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 2)


def test_partitions_are_requested_by_topic_and_null_means_all() -> None:
    assert log_dirs.describe_log_dirs_request(None).topics is None
    topics = log_dirs.describe_log_dirs_request([A0, B2, A1]).topics
    assert [(each.topic, each.partitions) for each in topics or []] == [("a", [0, 1]), ("b", [2])]


def test_a_directory_has_its_replicas_or_an_error() -> None:
    partitions = [DescribeLogDirsPartition(0, 10, 0), DescribeLogDirsPartition(1, 5, 3, True)]
    results = [
        DescribeLogDirsResult(0, "/x", [DescribeLogDirsTopic("a", partitions)], 100, 50, True),
        DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, "/y"),
    ]
    sound, offline = log_dirs.parse_describe_log_dirs_response(DescribeLogDirsResponse(results=results))
    assert (sound.path, sound.error, sound.total_bytes, sound.usable_bytes) == ("/x", None, 100, 50)
    assert sound.is_cordoned
    assert sound.replicas == {A0: LogDirReplica(10, 0, False), A1: LogDirReplica(5, 3, True)}
    assert offline.error is not None
    assert offline.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (offline.total_bytes, offline.usable_bytes) == (-1, -1)


def test_an_error_is_raised() -> None:
    with pytest.raises(KafkaError) as error:
        log_dirs.parse_describe_log_dirs_response(
            DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        )
    assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_replicas_are_moved_by_directory_and_topic() -> None:
    request = log_dirs.alter_log_dirs_request({A0: "/x", B2: "/y", A1: "/x"})
    assert [
        (directory.path, [(topic.name, topic.partitions) for topic in directory.topics])
        for directory in request.dirs
    ] == [("/x", [("a", [0, 1])]), ("/y", [("b", [2])])]


def test_each_replica_has_its_result() -> None:
    partitions = [
        AlterReplicaLogDirPartitionResult(0),
        AlterReplicaLogDirPartitionResult(1, ErrorCode.LOG_DIR_NOT_FOUND),
    ]
    outcomes = log_dirs.parse_alter_log_dirs_response(
        AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult("a", partitions)])
    )
    assert outcomes[A0] is None
    error = outcomes[A1]
    assert error is not None
    assert error.code is ErrorCode.LOG_DIR_NOT_FOUND
