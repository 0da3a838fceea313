"""How far groups are behind: committed offsets beside the ends of logs."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.group_messages import CommittedOffset
from barnabas.client.groups import Groups
from barnabas.client.offsets import LATEST, ListedOffset, list_offsets
from barnabas.wire.errors import KafkaError

_AT_ONCE = 8


class PartitionLag(NamedTuple):
    """A partition that a group has committed for; None where the broker does not tell."""

    place: TopicPartition
    committed: int
    end: int | None
    metadata: str

    @property
    def lag(self) -> int | None:
        """Records between what is committed and the end."""
        return None if self.end is None else max(0, self.end - self.committed)


#: The partitions of each group by its name, or why they may not be seen.
Lags = Mapping[str, Sequence[PartitionLag] | KafkaError]


async def lags_of(cluster: Cluster, names: Iterable[str]) -> Lags:
    """The lags of groups; the ends of logs are asked for once for all of them.

    :raises BrokerConnectionError: When no broker answers.
    """
    groups, turns = Groups(cluster), asyncio.Semaphore(_AT_ONCE)

    async def committed(name: str) -> dict[TopicPartition, CommittedOffset] | KafkaError:
        async with turns:
            try:
                found = await groups.offsets(name)
            except KafkaError as error:
                return error
        return {place: each for place, each in found.items() if isinstance(each, CommittedOffset)}

    wanted = list(names)
    found = dict(zip(wanted, await asyncio.gather(*map(committed, wanted)), strict=True))
    places = {place for each in found.values() if not isinstance(each, KafkaError) for place in each}
    ends = await list_offsets(cluster, dict.fromkeys(sorted(places), LATEST)) if places else {}
    return {
        name: each if isinstance(each, KafkaError) else _beside(each, ends) for name, each in found.items()
    }


def _beside(
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, ListedOffset | KafkaError],
) -> list[PartitionLag]:
    return [
        PartitionLag(place, each.offset, _end(ends.get(place)), each.metadata)
        for place, each in sorted(committed.items())
    ]


def _end(outcome: ListedOffset | KafkaError | None) -> int | None:
    return outcome.offset if isinstance(outcome, ListedOffset) else None


def total(lags: Sequence[PartitionLag] | KafkaError | None) -> int | None:
    """The lag of a whole group, as far as it is known; None for one that has committed nothing."""
    if lags is None or isinstance(lags, KafkaError):
        return None
    known = [each.lag for each in lags if each.lag is not None]
    return sum(known) if known else None


def by_topic(lags: Iterable[PartitionLag]) -> dict[str, int]:
    """The lag of each topic, as far as it is known."""
    found: dict[str, int] = {}
    for each in lags:
        found[each.place.topic] = found.get(each.place.topic, 0) + (each.lag or 0)
    return found
