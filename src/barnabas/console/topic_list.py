"""Topics as lists show them."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.client.core.errors import check
from barnabas.client.core.metadata import NO_LEADER
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic

#: How long a list waits for sizes of a broker.
_SIZES_TIMEOUT_S = 2.0


class TopicRow(NamedTuple):
    """A topic in a list: its partitions, and the unhealthy ones."""

    name: str
    is_internal: bool
    partitions_count: int
    replication_factor: int
    leaderless_count: int
    under_replicated_count: int
    replicas_count: int  #: of all partitions together


class TopicSize(NamedTuple):
    """A topic's bytes on the disks of the brokers that responded, and the number of replicas counted."""

    size_bytes: int
    replicas_count: int


async def list_topics(admin: Admin) -> list[TopicRow]:
    """Every topic that the principal may see, by name.

    :raises KafkaError: An error of the broker.
    :raises BrokerConnectionError: When no broker responds.
    """
    response: MetadataResponse = await admin.send(
        MetadataRequest(topics=None, allow_auto_topic_creation=False)
    )
    check(response.error_code)
    return topic_rows(response.topics)


def topic_rows(topics: Iterable[MetadataResponseTopic]) -> list[TopicRow]:
    """The rows of topics, by name."""
    return sorted(_row(topic) for topic in topics if topic.name)


def _row(topic: MetadataResponseTopic) -> TopicRow:
    partitions = topic.partitions
    return TopicRow(
        topic.name or "",
        topic.is_internal,
        len(partitions),
        max((len(each.replica_nodes) for each in partitions), default=0),
        sum(each.leader_id == NO_LEADER for each in partitions),
        sum(len(each.isr_nodes) < len(each.replica_nodes) for each in partitions),
        sum(len(each.replica_nodes) for each in partitions),
    )


async def topic_sizes(
    admin: Admin, nodes: Iterable[int], rows: Collection[TopicRow]
) -> Mapping[str, TopicSize]:
    """Bytes of these topics by name, with one request per broker; brokers that do not respond are left out."""
    partitions = [TopicPartition(row.name, index) for row in rows for index in range(row.partitions_count)]
    if not partitions:
        return {}
    results = await asyncio.gather(*(_directories(admin, node, partitions) for node in nodes))
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for directory in (each for directories in results for each in directories):
        for tp, replica in directory.replicas.items():
            if not replica.is_future:
                sizes[tp.topic] += replica.size_bytes
                counts[tp.topic] += 1
    return {name: TopicSize(sizes[name], counts[name]) for name in counts}


async def _directories(
    admin: Admin, node: int, partitions: Collection[TopicPartition]
) -> Sequence[LogDirDescription]:
    try:
        return await asyncio.wait_for(admin.describe_log_dirs(node, partitions), _SIZES_TIMEOUT_S)
    except (KafkaError, ConnectionError, TimeoutError):
        return ()
