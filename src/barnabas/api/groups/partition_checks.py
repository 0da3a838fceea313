"""Checks of the partitions in requests about offsets, before the group's coordinator gets them."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas.api.authorization import authorization_errors
from barnabas.api.context import RequestContext
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode


class NamedTopic(Protocol):
    """A topic of a request or response, with partitions that have a `partition_index`."""

    name: str
    partitions: list[Any]


TopicT = TypeVar("TopicT", bound=NamedTopic)


class RejectedPartitions(NamedTuple):
    """Partitions of a topic that share an error."""

    topic: Any  #: as in the request
    indexes: list[int]
    code: ErrorCode


def reject(topic: NamedTopic, code: ErrorCode) -> RejectedPartitions:
    """Reject all partitions of a topic."""
    return RejectedPartitions(topic, _indexes(topic.partitions), code)


async def split_known_partitions(
    context: RequestContext, operation: AclOperation, topics: Sequence[TopicT]
) -> tuple[list[TopicT], list[RejectedPartitions]]:
    """Return the topics with their known and authorized partitions, and the refused ones.

    TOPIC_AUTHORIZATION_FAILED comes before UNKNOWN_TOPIC_OR_PARTITION, so that principals without permission do not
    learn whether a topic exists.
    """
    names = await context.compute(lambda: {topic.name for topic in topics})
    forbidden = await authorization_errors(context, operation, ResourceType.TOPIC, names)
    known: list[TopicT] = []
    refused: list[RejectedPartitions] = []
    existing = context.broker.image.topics.rows
    async for topic in context.each(topics):
        if topic.name in forbidden:
            refused.append(reject(topic, forbidden[topic.name].code))
            continue
        there = existing.get(topic.name)
        if there is None:  # returned even if it is named without partitions
            refused.append(reject(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        count = there.partition_count
        missing = await context.compute(_missing, topic.partitions, count)
        if missing:
            refused.append(RejectedPartitions(topic, _indexes(missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            there_partitions = [
                partition for partition in topic.partitions if 0 <= partition.partition_index < count
            ]
            topic = _with_partitions(topic, there_partitions)
        if topic.partitions:
            known.append(topic)
    return known, refused


def _missing(partitions: Iterable[Any], count: int) -> list[Any]:
    return [partition for partition in partitions if not 0 <= partition.partition_index < count]


def _indexes(partitions: Iterable[Any]) -> list[int]:
    return [partition.partition_index for partition in partitions]


def _with_partitions(topic: TopicT, partitions: list[Any]) -> TopicT:
    reduced = copy(topic)
    reduced.partitions = partitions
    return reduced


def merge(refused: Iterable[TopicT], answered: Iterable[TopicT]) -> list[TopicT]:
    """Return one result for each topic: the refused partitions, then those of the coordinator."""
    merged: dict[tuple[str, bytes], TopicT] = {}
    for topic in (*refused, *answered):
        before = merged.setdefault((topic.name, getattr(topic, "topic_id", b"")), topic)
        if before is not topic:
            before.partitions.extend(topic.partitions)
    return list(merged.values())
