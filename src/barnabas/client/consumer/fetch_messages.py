"""Builds Fetch requests from positions, and reads responses as data per partition. No IO."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.core.metadata import Metadata
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

#: The last version that names topics; later ones carry only their ids (KIP-516).
_VERSION_BY_NAME_MAX = 12


@dataclass(frozen=True)
class FetchLimits:
    """Limits of a fetch: the wait of the broker, and the size of the response."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024


def fetch_request(
    positions: Mapping[TopicPartition, int], metadata: Metadata, limits: FetchLimits, isolation: Isolation
) -> FetchRequest:
    """Return a fetch outside any session, with topics by name and id, fenced by the leader epochs that are known."""
    topics: dict[str, FetchTopic] = {}
    for tp, position in positions.items():
        if tp.topic not in topics:
            topic_id = metadata.topic(tp.topic).topic_id
            topics[tp.topic] = FetchTopic(topic=tp.topic, topic_id=topic_id)
        partition = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=metadata.partition(tp).leader_epoch,
            fetch_offset=position,
            partition_max_bytes=limits.partition_max_bytes,
        )
        topics[tp.topic].partitions.append(partition)
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=isolation,
        topics=list(topics.values()),
    )


def version_max(request: FetchRequest) -> int | None:
    """Return the newest version that can carry the request; without the ids of all topics, the last one that names
    topics.
    """
    unknown = any(topic.topic_id == ZERO_UUID for topic in request.topics)
    return _VERSION_BY_NAME_MAX if unknown else None


def data_by_partition(response: FetchResponse, metadata: Metadata) -> dict[TopicPartition, PartitionData]:
    """Return the response's data of each partition."""
    return {
        TopicPartition(
            topic.topic or metadata.topic_name(topic.topic_id) or "", partition.partition_index
        ): partition
        for topic in response.responses
        for partition in topic.partitions
    }
