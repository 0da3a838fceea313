"""Sends one Fetch to the leader of partitions."""

from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.fetch_messages import FetchLimits, data_by_partition, fetch_request, version_max
from barnabas.client.core.cluster import MAIN_LANE, ClusterClient
from barnabas.client.core.errors import check
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import FetchResponse, PartitionData


async def fetch(
    cluster: ClusterClient,
    leader: int,
    positions: Mapping[TopicPartition, int],
    limits: FetchLimits,
    isolation: Isolation,
    *,
    lane: str = MAIN_LANE,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, PartitionData]:
    """Return the data of each partition, with its error code.

    :raises KafkaError: The error of the whole response.
    :raises BrokerConnectionError: When no response came.
    """
    metadata = cluster.metadata
    request = fetch_request(positions, metadata, limits, isolation)
    response: FetchResponse = await cluster.send(
        request, leader, lane=lane, version_max=version_max(request), timeout_ms=timeout_ms
    )
    check(response.error_code, f"broker {leader} refused Fetch")
    return data_by_partition(response, metadata)


async def fetch_partition(
    cluster: ClusterClient,
    tp: TopicPartition,
    position: int,
    limits: FetchLimits,
    isolation: Isolation,
    *,
    lane: str = MAIN_LANE,
) -> PartitionData:
    """Return the data of one partition from its present leader.

    :raises KafkaError: The error of the response or of the partition.
    :raises BrokerConnectionError: When no response came.
    """
    leader = await cluster.leader(tp)
    data = (await fetch(cluster, leader, {tp: position}, limits, isolation, lane=lane))[tp]
    check(data.error_code, f"fetch from offset {position} of partition {tp}")
    return data
