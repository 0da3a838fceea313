"""The trash of deleted topics, which only Barnabas has."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import ZERO_UUID
from barnabas.client.core.errors import check, error_for
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashResponse
from barnabas.wire.barnabas_messages.purge_topics import (
    PurgeTopicsRequest,
    PurgeTopicsResponse,
    TopicToPurge,
)
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicResponse
from barnabas.wire.errors import KafkaError


class TrashedTopicDescription(NamedTuple):
    """A deleted topic that can be brought back; times in ms since the epoch."""

    name: str
    topic_id: bytes
    partitions: int
    size_bytes: int
    deleted_ms: int
    deleted_by: str
    expires_ms: int


class UndeletedTopic(NamedTuple):
    """A topic that is back."""

    name: str
    topic_id: bytes
    partitions: int
    offsets: int  #: that groups had committed and have again


class Trashed(NamedTuple):
    """Which topic of the trash is meant: by its name, where that means one only, or by its id as well."""

    name: str
    topic_id: bytes = ZERO_UUID


def described(response: DescribeTrashResponse) -> list[TrashedTopicDescription]:
    """The topics in the trash, the latest deleted first.

    :raises KafkaError: What the broker answered.
    """
    check(response.error_code, response.error_message)
    return [
        TrashedTopicDescription(
            each.name,
            each.topic_id,
            each.partition_count,
            each.size_bytes,
            each.deleted_ms,
            each.deleted_by,
            each.expires_ms,
        )
        for each in response.topics
    ]


def undeleted(response: UndeleteTopicResponse) -> UndeletedTopic:
    """The topic that is back.

    :raises KafkaError: Why it is not.
    """
    check(response.error_code, response.error_message)
    return UndeletedTopic(response.name, response.topic_id, response.partition_count, response.offset_count)


def purging(topics: Iterable[Trashed]) -> PurgeTopicsRequest:
    """The order to let go of topics."""
    return PurgeTopicsRequest(topics=[TopicToPurge(*each) for each in topics])


def purged(response: PurgeTopicsResponse) -> dict[Trashed, KafkaError | None]:
    """What became of each; None stands for success."""
    return {
        Trashed(each.name, each.topic_id): error_for(each.error_code, each.error_message)
        for each in response.results
    }
