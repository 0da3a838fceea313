"""Lags of groups: committed offsets compared with log end offsets, for every partition that a group reads.

The protocol does not carry the members' `auto.offset.reset`, so the lag of a partition without a committed offset is
unknown, unless the partition is empty. Totals are then lower bounds.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.group_messages import GroupDescription, OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec, list_offsets
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.metadata import Metadata
from barnabas.wire.errors import KafkaError

_CONCURRENT_GROUPS_MAX = 8
_CONSUMER = "consumer"

Committed = Mapping[TopicPartition, OffsetAndMetadata]


class PartitionLag(NamedTuple):
    """A partition that a group reads; None means that an offset is missing or unknown."""

    tp: TopicPartition
    committed: OffsetAndMetadata | None
    end: int | None
    start: int | None = None  #: fetched only where the committed offset does not give the lag

    @property
    def lag(self) -> int | None:
        """Records between the committed offset and the end.

        None where the consumers' reset policy decides: without a committed offset, or with one beyond the
        end. An empty partition has no lag under any policy.
        """
        if self.end is None:
            return None
        if self.committed is not None and self.committed.offset <= self.end:
            return self.end - self.committed.offset
        return 0 if self.start == self.end else None


class LagTotal(NamedTuple):
    """A sum of lags: exact if `unknown_count` is 0, else a lower bound."""

    records_count: int
    unknown_count: int  #: partitions whose lag is not known

    def __str__(self) -> str:
        if not self.unknown_count:
            return str(self.records_count)
        return f"at least {self.records_count}" if self.records_count else "unknown"


#: The partitions of each group by its name, or the error that prevents showing them.
GroupLags = Mapping[str, Sequence[PartitionLag] | KafkaError]


async def lags_of(cluster: ClusterClient, names: Iterable[str]) -> GroupLags:
    """Return the lag of every partition that each group reads (see `partitions_read`).

    :raises BrokerConnectionError: When no broker responds.
    """
    groups, turns = Groups(cluster), asyncio.Semaphore(_CONCURRENT_GROUPS_MAX)

    async def fetch(name: str) -> tuple[GroupDescription, Committed] | KafkaError:
        async with turns:
            try:
                return await _described(groups, name), _without_errors(await groups.offsets(name))
            except KafkaError as error:
                return error

    group_names = list(names)
    results = dict(zip(group_names, await asyncio.gather(*map(fetch, group_names)), strict=True))
    known_groups = {name: result for name, result in results.items() if not isinstance(result, KafkaError)}
    topics = {topic for group, offsets in known_groups.values() for topic in topics_read(group, offsets)}
    metadata = await cluster.refresh(topics) if topics else cluster.metadata
    committed = {name: offsets for name, (_, offsets) in known_groups.items()}
    partitions = {
        name: partitions_read(group, offsets, metadata) for name, (group, offsets) in known_groups.items()
    }
    lags = await _partition_lags(cluster, committed, partitions)
    return {
        name: result if isinstance(result, KafkaError) else lags[name] for name, result in results.items()
    }


async def lags_of_partitions(
    cluster: ClusterClient, name: str, partitions: Collection[TopicPartition]
) -> Sequence[PartitionLag]:
    """Return the lags of one group in these partitions, whether it reads them or not.

    :raises KafkaError: GROUP_ID_NOT_FOUND and other errors of the group.
    :raises BrokerConnectionError: When no broker responds.
    """
    groups = Groups(cluster)
    await _described(groups, name)
    offsets = await groups.offsets(name, partitions)
    raise_errors(offsets.values())
    return (await _partition_lags(cluster, {name: _without_errors(offsets)}, {name: partitions}))[name]


def topics_read(group: GroupDescription, committed: Committed) -> set[str]:
    """Return the topics of which the group reads every partition: those that its members subscribe to or are assigned.

    Without members, or while a rebalance hides their subscriptions, these are the topics with committed offsets;
    except for a group that never had members, whose consumers assign single partitions.
    """
    subscribed = {topic for member in group.members for topic in member.subscription}
    subscribed |= {tp.topic for member in group.members for tp in member.assignment}
    if subscribed or group.protocol_type != _CONSUMER:
        return subscribed
    return {tp.topic for tp in committed}


def partitions_read(group: GroupDescription, committed: Committed, metadata: Metadata) -> set[TopicPartition]:
    """Return every partition with a committed offset or an owner, and all of the topics that the group reads."""
    partitions = set(committed) | {tp for member in group.members for tp in member.assignment}
    for topic in topics_read(group, committed):
        info = metadata.topics.get(topic)
        if info is not None:
            partitions |= {TopicPartition(topic, partition.partition_index) for partition in info.partitions}
    return partitions


def total_lag(lags: Iterable[PartitionLag]) -> LagTotal:
    """Sum the lags of a group or a topic."""
    values = [partition.lag for partition in lags]
    known = [lag for lag in values if lag is not None]
    return LagTotal(sum(known), len(values) - len(known))


def lag_by_topic(lags: Iterable[PartitionLag]) -> dict[str, LagTotal]:
    """Sum the lags of each topic."""
    topics: dict[str, list[PartitionLag]] = {}
    for partition_lag in lags:
        topics.setdefault(partition_lag.tp.topic, []).append(partition_lag)
    return {topic: total_lag(lags_of_topic) for topic, lags_of_topic in topics.items()}


async def _described(groups: Groups, name: str) -> GroupDescription:
    description = (await groups.describe([name]))[name]
    if isinstance(description, KafkaError):
        raise description
    return description


def _without_errors(offsets: Mapping[TopicPartition, OffsetAndMetadata | KafkaError]) -> Committed:
    return {tp: result for tp, result in offsets.items() if isinstance(result, OffsetAndMetadata)}


async def _partition_lags(
    cluster: ClusterClient,
    committed: Mapping[str, Committed],
    partitions: Mapping[str, Collection[TopicPartition]],
) -> dict[str, list[PartitionLag]]:
    """Return the lags of each group; list the offsets of a partition once, however many groups read it."""
    ends = await _list(cluster, {tp for group_tps in partitions.values() for tp in group_tps}, LATEST)
    lags = {
        name: [PartitionLag(tp, committed[name].get(tp), ends.get(tp)) for tp in sorted(group_tps)]
        for name, group_tps in partitions.items()
    }
    unclear = {
        partition.tp
        for group_lags in lags.values()
        for partition in group_lags
        if partition.lag is None and partition.end is not None
    }
    starts = await _list(cluster, unclear, EARLIEST)
    return {
        name: [partition._replace(start=starts.get(partition.tp)) for partition in group_lags]
        for name, group_lags in lags.items()
    }


async def _list(
    cluster: ClusterClient, partitions: Collection[TopicPartition], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    """Return the listed offsets; partitions with errors are left out."""
    if not partitions:
        return {}
    listed = await list_offsets(cluster, dict.fromkeys(sorted(partitions), spec))
    return {tp: result.offset for tp, result in listed.items() if isinstance(result, ListedOffset)}
