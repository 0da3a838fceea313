"""Offsets by meaning: earliest, latest, or the first at or after a time."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import error_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER_REPLICA_ID = -1
_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class OffsetSpec:
    """A position in a log; `timestamp_ms` is a time, or one of Kafka's negative markers (ListOffsets)."""

    timestamp_ms: int

    @classmethod
    def at(cls, timestamp_ms: int) -> "OffsetSpec":
        """Return the spec of the first record at or after `timestamp_ms` since the epoch."""
        assert timestamp_ms >= 0, timestamp_ms
        return cls(timestamp_ms)


LATEST = OffsetSpec(-1)
EARLIEST = OffsetSpec(-2)
MAX_TIMESTAMP = OffsetSpec(-3)


class ListedOffset(NamedTuple):
    """An offset, -1 if no record matches; `timestamp_ms` is that of its record after a search, else -1."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    cluster: ClusterClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    """Return offsets from each partition's leader, with retries; an error is for its partition alone.

    :raises BrokerConnectionError: If a leader cannot be reached.
    """
    results: dict[TopicPartition, ListedOffset | KafkaError] = {}

    async def attempt() -> None:
        missing = {tp: specs[tp] for tp in specs if not isinstance(results.get(tp), ListedOffset)}
        results.update(await _list_from_leaders(cluster, missing, isolation))
        for tp in missing:
            result = results[tp]
            if isinstance(result, KafkaError) and _is_worth_retrying(result):
                raise result

    try:
        await cluster.retrying(attempt)
    except KafkaError as error:
        if error not in results.values():
            raise
    return results


async def find_offsets(
    cluster: ClusterClient,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """Return the offset of each spec as `list_offsets`, but raise the first error.

    :raises KafkaError: That of the first partition that fails.
    :raises BrokerConnectionError: If a leader cannot be reached.
    """
    if not specs:
        return {}
    offsets = {}
    for tp, outcome in (await list_offsets(cluster, specs, isolation)).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        offsets[tp] = outcome.offset
    return offsets


def _is_worth_retrying(error: KafkaError) -> bool:
    # The metadata had a leader, so an unknown topic does not exist.
    return error.code.retriable and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _list_from_leaders(
    cluster: ClusterClient, specs: Mapping[TopicPartition, OffsetSpec], isolation: Isolation
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    results: dict[TopicPartition, ListedOffset | KafkaError] = {}
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for tp in specs:
        try:
            by_leader[await cluster.leader(tp)].append(tp)
        except KafkaError as error:
            results[tp] = error
    for leader, partitions in by_leader.items():
        request = _request({tp: specs[tp] for tp in partitions}, isolation)
        response: ListOffsetsResponse = await cluster.send(request, leader)
        results.update(_results(response))
    return results


def _request(specs: Mapping[TopicPartition, OffsetSpec], isolation: Isolation) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, spec in specs.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        topic.partitions.append(
            ListOffsetsPartition(partition_index=tp.partition, timestamp=spec.timestamp_ms)
        )
    return ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        isolation_level=isolation,
        topics=list(topics.values()),
        timeout_ms=_TIMEOUT_MS,
    )


def _results(response: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset | KafkaError]:
    return {
        TopicPartition(topic.name, partition.partition_index): _result(topic.name, partition)
        for topic in response.topics
        for partition in topic.partitions
    }


def _result(topic: str, partition: ListOffsetsPartitionResponse) -> ListedOffset | KafkaError:
    error = error_for(partition.error_code, f"offsets of partition {topic}-{partition.partition_index}")
    return error or ListedOffset(partition.offset, partition.timestamp, partition.leader_epoch)
