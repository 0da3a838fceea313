"""All topics at a glance, as lists show them."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.admin import Admin
from barnabas.client.errors import check
from barnabas.client.metadata import NO_LEADER
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic


class TopicRow(NamedTuple):
    """A topic's line: how many partitions it has, and how many of those are not well."""

    name: str
    is_internal: bool
    partitions_count: int
    replication_factor: int
    leaderless_count: int
    under_replicated_count: int


async def list_topics(admin: Admin) -> list[TopicRow]:
    """Every topic that the principal may see, by name.

    :raises KafkaError: What the broker answered.
    :raises BrokerConnectionError: When no broker answers.
    """
    response: MetadataResponse = await admin.send(
        MetadataRequest(topics=None, allow_auto_topic_creation=False)
    )
    check(response.error_code)
    return topic_rows(response.topics)


def topic_rows(topics: Iterable[MetadataResponseTopic]) -> list[TopicRow]:
    """The lines of topics, by name."""
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
    )
