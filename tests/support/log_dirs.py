"""Short forms of requests on log directories."""

from pathlib import Path

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsResponse

#: (topic, partition) -> (size in bytes, lag, whether it is a future replica)
Replicas = dict[tuple[str, int], tuple[int, int, bool]]


def move(directory: Path | str, topic: str, *partitions: int) -> AlterReplicaLogDirsRequest:
    """Move partitions of one topic to one directory."""
    topics = [AlterReplicaLogDirTopic(topic, list(partitions))]
    return AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(directory), topics)])


def codes(response: AlterReplicaLogDirsResponse) -> dict[tuple[str, int], str]:
    """Return (topic, partition) -> error code."""
    return {
        (topic.topic_name, each.partition_index): ErrorCode(each.error_code).name
        for topic in response.results
        for each in topic.partitions
    }


def replicas(response: DescribeLogDirsResponse) -> dict[str, Replicas]:
    """Return the last component of a directory's path -> its replicas."""
    return {
        Path(result.log_dir).name: {
            (topic.name, each.partition_index): (each.partition_size, each.offset_lag, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        }
        for result in response.results
    }


def partitions(response: DescribeLogDirsResponse) -> dict[tuple[str, int], list[str]]:
    """Return (topic, partition) -> the directories that have it; future replicas are marked."""
    found: dict[tuple[str, int], list[str]] = {}
    for directory, there in replicas(response).items():
        for name, (_, _, is_future) in there.items():
            found.setdefault(name, []).append(directory + ("?" if is_future else ""))
    return found
