"""Requests to the controller: elections, reassignments, features, the quorum."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import check, error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.features import UpgradeType
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


class ElectionType(IntEnum):
    """Which replica may lead: the preferred one if it is in sync, or (for partitions without a leader) any active
    one.
    """

    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """A reassignment in progress, with node ids."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class FeatureDescription(NamedTuple):
    """A feature of the cluster: the levels that the broker supports (None: not at all), and the finalized one, or 0."""

    name: str
    supported: tuple[int, int] | None
    level: int


class QuorumReplica(NamedTuple):
    """A node of the metadata quorum."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    addresses: tuple[tuple[str, BrokerAddress], ...]  #: by listener name


class QuorumDescription(NamedTuple):
    """The metadata quorum and its offsets."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


def elect_leaders_request(
    election: ElectionType, partitions: Collection[TopicPartition] | None, timeout_ms: int
) -> ElectLeadersRequest:
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(name, indexes) for name, indexes in _by_topic(partitions).items()]
    return ElectLeadersRequest(election, topics, timeout_ms)


def parse_elect_leaders_response(response: ElectLeadersResponse) -> dict[TopicPartition, KafkaError | None]:
    """Return the error of each partition; None for a new leader.

    :raises KafkaError: If the whole request was refused.
    """
    check(response.error_code)
    return {
        TopicPartition(topic.topic, partition.partition_id): error_for(
            partition.error_code, partition.error_message
        )
        for topic in response.replica_election_results
        for partition in topic.partition_result
    }


def alter_reassignments_request(
    targets: Mapping[TopicPartition, Sequence[int] | None], allows_factor_change: bool, timeout_ms: int
) -> AlterPartitionReassignmentsRequest:
    """Return the request to move partitions; None as a target cancels a reassignment."""
    topics = [
        ReassignableTopic(name, [_target(index, targets[TopicPartition(name, index)]) for index in indexes])
        for name, indexes in _by_topic(targets).items()
    ]
    return AlterPartitionReassignmentsRequest(timeout_ms, allows_factor_change, topics)


def _target(index: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(index, None if replicas is None else list(replicas))


def parse_alter_reassignments_response(
    response: AlterPartitionReassignmentsResponse,
) -> dict[TopicPartition, KafkaError | None]:
    """Return the error of each partition; None for success.

    :raises KafkaError: If the whole request was refused.
    """
    check(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): error_for(
            partition.error_code, partition.error_message
        )
        for topic in response.responses
        for partition in topic.partitions
    }


def parse_list_reassignments_response(
    response: ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, Reassignment]:
    """Return the reassignments in progress.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): Reassignment(
            tuple(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def parse_features(response: ApiVersionsResponse) -> list[FeatureDescription]:
    """Return all features that the broker supports or the cluster uses, by name.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code)
    supported = {
        feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features
    }
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return [
        FeatureDescription(name, supported.get(name), levels.get(name, 0))
        for name in sorted(supported | levels)
    ]


def update_features_request(
    levels: Mapping[str, int], upgrade_type: UpgradeType, validate_only: bool, timeout_ms: int
) -> UpdateFeaturesRequest:
    updates = [
        FeatureUpdateKey(name, level, upgrade_type=upgrade_type, allow_downgrade=False)
        for name, level in levels.items()
    ]
    return UpdateFeaturesRequest(timeout_ms, updates, validate_only)


def describe_quorum_request() -> DescribeQuorumRequest:
    return DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


def parse_describe_quorum_response(response: DescribeQuorumResponse) -> QuorumDescription:
    """Return the quorum.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    check(partition.error_code, partition.error_message)
    addresses = {
        node.node_id: tuple(
            (listener.name, BrokerAddress(listener.host, listener.port)) for listener in node.listeners
        )
        for node in response.nodes
    }

    def replicas(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
        return tuple(
            QuorumReplica(
                state.replica_id,
                state.replica_directory_id,
                state.log_end_offset,
                addresses.get(state.replica_id, ()),
            )
            for state in states
        )

    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        replicas(partition.current_voters),
        replicas(partition.observers),
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        indexes[tp.topic].append(tp.partition)
    return indexes
