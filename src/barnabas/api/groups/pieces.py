"""Large requests on the offsets of a group, in pieces: its coordinator handles each in one go, others in between."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

TopicT = TypeVar("TopicT")

#: Partitions of one piece: to commit their offsets takes 2 to 8 ms.
PIECE_PARTITIONS_MAX = 200


def pieces(topics: Sequence[TopicT], field: str = "partitions") -> Iterator[list[TopicT]]:
    """Topics with their partitions, which are in `field`, so many at a time; a long topic is in several pieces.

    A topic without partitions counts as one with a partition. Without topics there is one piece without topics.
    """
    piece: list[TopicT] = []
    left_count = PIECE_PARTITIONS_MAX
    for topic in topics:
        for part in _parts(topic, field):
            count = max(len(getattr(part, field)), 1)
            if count > left_count:
                yield piece
                piece, left_count = [], PIECE_PARTITIONS_MAX
            piece.append(part)
            left_count -= count
    yield piece


def _parts(topic: TopicT, field: str) -> Iterator[TopicT]:
    partitions: list[Any] = getattr(topic, field)
    if len(partitions) <= PIECE_PARTITIONS_MAX:
        yield topic
        return
    for start in range(0, len(partitions), PIECE_PARTITIONS_MAX):
        part = copy(topic)
        setattr(part, field, partitions[start : start + PIECE_PARTITIONS_MAX])
        yield part
