"""Requests that name many partitions, in parts that fit into one commit each."""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from barnabas.metadata.partition_change_builder import PartitionOutcome, TopicOutcome
from barnabas.wire.errors import KafkaError

PartitionT = TypeVar("PartitionT")


class TopicPart(NamedTuple, Generic[PartitionT]):
    """Some of the partitions that a request names for a topic."""

    name: str
    partitions: Sequence[PartitionT]
    continues_last: bool = False  #: the part before is of the same topic

    def failed(self, indexes: Iterable[int], error: KafkaError) -> TopicOutcome:
        """Return the outcome if none of these partitions is changed."""
        return TopicOutcome(self.name, [PartitionOutcome(index, error) for index in indexes])


def divided(
    requested: Iterable[tuple[str, Sequence[PartitionT]]], count_max: int
) -> list[TopicPart[PartitionT]]:
    """Divide the partitions of each topic into parts of at most `count_max`."""
    return [
        TopicPart(name, partitions[start : start + count_max], continues_last=start > 0)
        for name, partitions in requested
        for start in range(0, max(1, len(partitions)), count_max)
    ]


def joined(parts: Iterable[TopicPart[PartitionT]], outcomes: Iterable[TopicOutcome]) -> list[TopicOutcome]:
    """Return the outcomes of the topics, from those of the parts."""
    topics: list[TopicOutcome] = []
    for part, outcome in zip(parts, outcomes, strict=True):
        if part.continues_last:
            topics[-1].partitions.extend(outcome.partitions)
        else:
            topics.append(TopicOutcome(outcome.name, list(outcome.partitions)))
    return topics
