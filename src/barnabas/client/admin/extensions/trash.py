"""The trash of deleted topics, which only Barnabas has."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import ZERO_UUID
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check, error_for
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashRequest, DescribeTrashResponse
from barnabas.wire.barnabas_messages.purge_topics import (
    PurgeTopicsRequest,
    PurgeTopicsResponse,
    TopicToPurge,
)
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicResponse
from barnabas.wire.errors import KafkaError

#: How long a broker may take; the sizes of its logs are left out then.
ANSWER_TIMEOUT_S = 5.0


class TrashedTopicDescription(NamedTuple):
    """A topic in the trash; times in ms since the epoch."""

    name: str
    topic_id: bytes
    partitions: int
    size_bytes: int  #: of its logs on all brokers that respond
    deleted_ms: int
    deleted_by: str
    expires_ms: int


class UndeletedTopic(NamedTuple):
    """A restored topic."""

    name: str
    topic_id: bytes
    partitions: int
    offsets: int  #: number of restored committed offsets


class Trashed(NamedTuple):
    """A topic in the trash: its name, and its id if several topics had that name."""

    name: str
    topic_id: bytes = ZERO_UUID


async def describe_trash(cluster: ClusterClient) -> list[TrashedTopicDescription]:
    """Return the topics in the trash, the latest deleted first.

    :raises KafkaError: UNSUPPORTED_VERSION from brokers that are not Barnabas.
    """
    nodes = sorted(cluster.metadata.nodes)
    outcomes = await asyncio.gather(*(_ask(cluster, node) for node in nodes), return_exceptions=True)
    responses = [outcome for outcome in outcomes if isinstance(outcome, DescribeTrashResponse)]
    if not responses:
        responses = [await cluster.retrying(lambda: cluster.send(DescribeTrashRequest()))]
    found = [topic for response in responses for topic in parse_describe_trash_response(response)]
    sizes_bytes: Counter[bytes] = Counter()
    for topic in found:
        sizes_bytes[topic.topic_id] += topic.size_bytes
    topics = {topic.topic_id: topic for topic in found}.values()
    summed = [topic._replace(size_bytes=sizes_bytes[topic.topic_id]) for topic in topics]
    return sorted(summed, key=lambda topic: -topic.deleted_ms)


async def _ask(cluster: ClusterClient, node: int) -> DescribeTrashResponse:
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        response: DescribeTrashResponse = await cluster.send(DescribeTrashRequest(), node)
        return response


def parse_describe_trash_response(response: DescribeTrashResponse) -> list[TrashedTopicDescription]:
    """Return the topics in the trash, the latest deleted first.

    :raises KafkaError: From the broker.
    """
    check(response.error_code, response.error_message)
    return [
        TrashedTopicDescription(
            topic.name,
            topic.topic_id,
            topic.partition_count,
            topic.size_bytes,
            topic.deleted_ms,
            topic.deleted_by,
            topic.expires_ms,
        )
        for topic in response.topics
    ]


def parse_undelete_response(response: UndeleteTopicResponse) -> UndeletedTopic:
    """Return the restored topic.

    :raises KafkaError: From the broker.
    """
    check(response.error_code, response.error_message)
    return UndeletedTopic(response.name, response.topic_id, response.partition_count, response.offset_count)


def purge_topics_request(topics: Iterable[Trashed]) -> PurgeTopicsRequest:
    return PurgeTopicsRequest(topics=[TopicToPurge(*topic) for topic in topics])


def parse_purge_topics_response(response: PurgeTopicsResponse) -> dict[Trashed, KafkaError | None]:
    """Return the error of each topic; None for success."""
    return {
        Trashed(result.name, result.topic_id): error_for(result.error_code, result.error_message)
        for result in response.results
    }
