"""End offsets of leader epochs (KIP-101)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

#: The replica id of a consumer.
_CONSUMER_REPLICA_ID = -1


class EpochEnd(NamedTuple):
    """The last epoch up to the requested one, and its end offset; -1 for none."""

    leader_epoch: int
    end_offset: int


async def list_epoch_ends(
    cluster: ClusterClient, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd | KafkaError]:
    """Return the end of each partition's epoch from its leader, or the error for it.

    :raises BrokerConnectionError: If a leader cannot be reached.
    """
    ends: dict[TopicPartition, EpochEnd | KafkaError] = {}
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for tp in epochs:
        try:
            by_leader[await cluster.leader(tp)].append(tp)
        except KafkaError as error:
            ends[tp] = error
    for leader, partitions in by_leader.items():
        request = _request({tp: epochs[tp] for tp in partitions})
        response: OffsetForLeaderEpochResponse = await cluster.send(request, leader)
        for topic in response.topics:
            for partition in topic.partitions:
                ends[TopicPartition(topic.topic, partition.partition)] = _epoch_end(topic.topic, partition)
    return ends


def _request(epochs: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, epoch in epochs.items():
        topic = topics.setdefault(tp.topic, OffsetForLeaderTopic(tp.topic))
        topic.partitions.append(OffsetForLeaderPartition(tp.partition, leader_epoch=epoch))
    return OffsetForLeaderEpochRequest(_CONSUMER_REPLICA_ID, list(topics.values()))


def _epoch_end(topic: str, partition: EpochEndOffset) -> EpochEnd | KafkaError:
    error = error_for(partition.error_code, f"epochs of partition {topic}-{partition.partition}")
    return error or EpochEnd(partition.leader_epoch, partition.end_offset)
