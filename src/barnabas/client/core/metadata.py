"""The metadata of a cluster: brokers, topics, leaders. Immutable; a refresh creates a new object."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import check, error_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


class Node(NamedTuple):
    """A broker as it advertises itself."""

    node_id: int
    address: BrokerAddress
    rack: str | None


class PartitionInfo(NamedTuple):
    """The leader and replicas of a partition; `leader` is -1 while there is none."""

    partition_index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True)
class TopicInfo:
    """A topic and its partitions in the order of their indexes; `error` is the reason if it cannot be used."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
    error: KafkaError | None = None

    @property
    def replication_factor(self) -> int:
        """Return the largest number of replicas among the partitions."""
        return max((len(partition.replicas) for partition in self.partitions), default=0)

    def find_partition(self, index: int) -> PartitionInfo | None:
        partitions = self.partitions
        if 0 <= index < len(partitions) and partitions[index].partition_index == index:
            return partitions[index]
        # unless an index is missing, so that the others have moved
        return next((partition for partition in partitions if partition.partition_index == index), None)

    def partition(self, index: int) -> PartitionInfo:
        """Return the partition with that index.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.find_partition(index)
        if found is None:
            count = len(self.partitions)
            raise _unknown(f"topic '{self.name}' has {count} partitions, and none with index {index}")
        return found


@dataclass(frozen=True)
class Metadata:
    """Brokers, and the topics requested so far."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)

    def node(self, node_id: int) -> Node:
        """Return the broker with that id.

        :raises KafkaError: BROKER_NOT_AVAILABLE.
        """
        if node_id not in self.nodes:
            known = ", ".join(str(known_id) for known_id in sorted(self.nodes)) or "none"
            message = f"there is no broker with node id {node_id}; the cluster has: {known}"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, message)
        return self.nodes[node_id]

    def topic(self, name: str) -> TopicInfo:
        """Return the topic of that name.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION when it was never fetched, or the topic's error.
        """
        topic = self.topics.get(name)
        if topic is None:
            raise _unknown(f"topic '{name}' is unknown")
        if topic.error is not None:
            raise topic.error
        return topic

    def partition(self, tp: TopicPartition) -> PartitionInfo:
        """Return that partition, with or without a leader.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or the topic's own error.
        """
        return self.topic(tp.topic).partition(tp.partition)

    def leader(self, tp: TopicPartition) -> int:
        """Return the node id of the partition's leader.

        :raises KafkaError: LEADER_NOT_AVAILABLE without a leader, or if the last known one has left the cluster;
            UNKNOWN_TOPIC_OR_PARTITION.
        """
        leader = self.partition(tp).leader
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp} has no leader")
        if leader not in self.nodes:  # the brokers may be newer than the topic
            gone = f"broker {leader}, the last known leader of partition {tp}, is not in the cluster"
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, gone)
        return leader

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with that id; None if it is not known."""
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def updated(self, response: MetadataResponse, *, complete: bool) -> "Metadata":
        """Return this metadata with a response added; with `complete` (all topics were requested) other topics are
        removed.

        :raises KafkaError: The error of the response as a whole (version 13 on).
        """
        check(response.error_code, "the broker refused Metadata")
        answered = {topic.name: _topic(topic) for topic in response.topics if topic.name is not None}
        return replace(
            self,
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes={broker.node_id: _node(broker) for broker in response.brokers},
            topics=answered if complete else {**self.topics, **answered},
        )


def _unknown(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


def _node(broker: MetadataResponseBroker) -> Node:
    return Node(broker.node_id, BrokerAddress(broker.host, broker.port), broker.rack)


def _topic(topic: MetadataResponseTopic) -> TopicInfo:
    assert topic.name is not None
    partitions = [
        _partition(partition)
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]
    missing = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = error_for(topic.error_code, f"topic '{topic.name}'" + " does not exist" * missing)
    return TopicInfo(topic.name, topic.topic_id, topic.is_internal, tuple(partitions), error)


def _partition(partition: MetadataResponsePartition) -> PartitionInfo:
    return PartitionInfo(
        partition_index=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline=tuple(partition.offline_replicas),
    )
