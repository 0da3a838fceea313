"""Partitions in pages, with eligible leader replicas (KIP-966)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)

PAGE_PARTITIONS_COUNT = 2_000


class PartitionDescription(NamedTuple):
    """The node ids of a partition; `leader` is -1 if there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]  #: eligible leader replicas, not in sync
    last_known_eligible: tuple[int, ...]
    offline: tuple[int, ...]


async def describe_topic_partitions(
    cluster: ClusterClient, names: Collection[str] = (), page_partitions_count: int = PAGE_PARTITIONS_COUNT
) -> Mapping[str, list[PartitionDescription] | KafkaError]:
    """Yield the partitions of those topics, or of all, by name, in pages of limited size.

    :raises KafkaError: UNSUPPORTED_VERSION from brokers before 3.8.
    """
    descriptions: dict[str, list[PartitionDescription] | KafkaError] = {}
    topics = [TopicRequest(name) for name in sorted(names)]
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(topics, page_partitions_count, cursor)
        response: DescribeTopicPartitionsResponse = await cluster.send(request)
        for topic in response.topics:
            name = topic.name or ""
            error = error_for(topic.error_code, f"topic '{name}'")
            before = descriptions.get(name, [])
            if error is not None:
                descriptions[name] = error
            elif isinstance(before, list):
                descriptions[name] = before + [
                    _partition_description(partition) for partition in topic.partitions
                ]
        if response.next_cursor is None:
            return descriptions
        cursor = Cursor(response.next_cursor.topic_name, response.next_cursor.partition_index)


def _partition_description(partition: DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.eligible_leader_replicas or ()),
        tuple(partition.last_known_elr or ()),
        tuple(partition.offline_replicas),
    )
