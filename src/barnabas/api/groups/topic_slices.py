"""Splits large requests about offsets of a group, so that other clients are served in between."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar


class RequestWithTopics(Protocol):
    """A request about partitions of topics."""

    topics: list[Any]


RequestT = TypeVar("RequestT", bound=RequestWithTopics)
TopicT = TypeVar("TopicT")

#: Partitions of one part: committing their offsets takes 2 to 8 ms.
SLICE_PARTITIONS_MAX = 200


def request_slices(request: RequestT, topics: Sequence[Any]) -> Iterator[RequestT]:
    """Yield copies of a request with parts of these topics."""
    for one_slice in slices(topics):
        part = copy(request)
        part.topics = one_slice
        yield part


def slices(topics: Sequence[TopicT], field: str = "partitions") -> Iterator[list[TopicT]]:
    """Yield parts of topics, whose partitions are in `field`, of limited size; a long topic is in several parts.

    A topic without partitions counts as one partition. Without topics, yield one part without topics.
    """
    one_slice: list[TopicT] = []
    left_count = SLICE_PARTITIONS_MAX
    for topic in topics:
        for part in _split_topic(topic, field):
            count = max(len(getattr(part, field)), 1)
            if count > left_count:
                yield one_slice
                one_slice, left_count = [], SLICE_PARTITIONS_MAX
            one_slice.append(part)
            left_count -= count
    yield one_slice


def _split_topic(topic: TopicT, field: str) -> Iterator[TopicT]:
    partitions: list[Any] = getattr(topic, field)
    if len(partitions) <= SLICE_PARTITIONS_MAX:
        yield topic
        return
    for start in range(0, len(partitions), SLICE_PARTITIONS_MAX):
        part = copy(topic)
        setattr(part, field, partitions[start : start + SLICE_PARTITIONS_MAX])
        yield part
