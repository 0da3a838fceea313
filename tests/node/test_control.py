"""Elections, reassignments, features and the quorum of a real broker, over a socket and across restarts."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.log.startup.meta_properties import read_meta_properties
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.admin import described, grow, more_partitions
from support.batches import batch
from support.control import SECOND, add_broker, remove_leader
from support.wire import Wire


@pytest.fixture
def own(kafka: EmbeddedBroker) -> int:
    """Return the broker's id; create a topic of two partitions and register a second broker that does not exist."""
    kafka.create_topic("t", partitions=2)
    add_broker(kafka)
    return kafka.server.broker.broker_id


def move(wire: Wire, *targets: tuple[int, list[int] | None], **fields: Any) -> list[str]:
    partitions = [ReassignablePartition(*target) for target in targets]
    response = wire.ask(
        AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)], **fields)
    )
    assert response.error_code == ErrorCode.NONE
    return [ErrorCode(each.error_code).name for each in response.responses[0].partitions]


def list_reassignments(wire: Wire) -> dict[int, tuple[list[int], list[int]]]:
    topics = wire.ask(ListPartitionReassignmentsRequest()).topics
    return {
        each.partition_index: (each.adding_replicas, each.removing_replicas)
        for topic in topics
        for each in topic.partitions
    }


def elect(wire: Wire, *indexes: int) -> list[str]:
    response = wire.ask(ElectLeadersRequest(0, [TopicPartitions("t", list(indexes))]))
    return [ErrorCode(each.error_code).name for each in response.replica_election_results[0].partition_result]


def test_a_partition_is_served_during_its_reassignment(kafka: EmbeddedBroker, own: int, wire: Wire) -> None:
    assert move(wire, (0, [SECOND])) == ["NONE"]
    assert list_reassignments(wire) == {0: ([SECOND], [own])}
    assert wire.produce("t", batch(b"x")).error_code == ErrorCode.NONE
    partition = next(each for each in described(wire, "t").partitions if each.partition_index == 0)
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (own, [SECOND, own], [own])
    assert partition.offline_replicas == []


def test_a_reassignment_survives_a_restart_and_can_be_cancelled(kafka: EmbeddedBroker, own: int) -> None:
    with Wire(kafka.port) as wire:
        move(wire, (0, [SECOND, own]), (1, [SECOND]))
    kafka.restart(kill=True)
    with Wire(kafka.port) as wire:
        assert list_reassignments(wire) == {0: ([SECOND], []), 1: ([SECOND], [own])}
        assert move(wire, (0, None), (1, None), (1, None)) == ["NONE", "NONE", "NONE"]
        assert list_reassignments(wire) == {}
        assert move(wire, (0, None)) == ["NO_REASSIGNMENT_IN_PROGRESS"]
        assert wire.produce("t", batch(b"x"), partition=1).error_code == ErrorCode.NONE


def test_a_topic_can_be_deleted_and_recreated_during_a_reassignment(
    kafka: EmbeddedBroker, own: int, wire: Wire
) -> None:
    move(wire, (0, [SECOND]), (1, [SECOND]))
    kafka.delete_topic("t")
    assert list_reassignments(wire) == {}
    kafka.create_topic("t", partitions=2)
    assert [each.replica_nodes for each in described(wire, "t").partitions] in (
        [[own], [SECOND]],
        [[SECOND], [own]],
    )


def test_partitions_can_be_added_during_a_reassignment(kafka: EmbeddedBroker, own: int, wire: Wire) -> None:
    move(wire, (0, [SECOND, own]))
    assert grow(wire, more_partitions("t", 3))["t"].error_code == ErrorCode.NONE
    by_index = {each.partition_index: each for each in described(wire, "t").partitions}
    assert sorted(by_index[2].replica_nodes) == sorted([own, SECOND])
    assert list_reassignments(wire) == {0: ([SECOND], [])}


def test_an_elected_leader_accepts_records_and_its_epoch_survives_a_restart(
    kafka: EmbeddedBroker, wire: Wire
) -> None:
    kafka.create_topic("t")
    remove_leader(kafka, "t")
    assert wire.produce("t", batch(b"x")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert elect(wire, 0, 1) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert wire.produce("t", batch(b"x")).error_code == ErrorCode.NONE
    kafka.restart()
    with Wire(kafka.port) as after:
        [partition] = described(after, "t").partitions
        assert (partition.error_code, partition.leader_epoch) == (ErrorCode.NONE, 1)
        assert elect(after, 0) == ["ELECTION_NOT_NEEDED"]


def test_one_of_many_concurrent_elections_succeeds(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    remove_leader(kafka, "t")

    def once(_: int) -> str:
        with Wire(kafka.port) as wire:
            return elect(wire, 0)[0]

    with ThreadPoolExecutor(8) as threads:
        error_names = list(threads.map(once, range(8)))
    assert sorted(error_names) == [*["ELECTION_NOT_NEEDED"] * 7, "NONE"]
    assert kafka.server.broker.replicas.partition("t", 0).leader_epoch == 1


def test_the_quorum_has_the_directory_id_on_disk(kafka: EmbeddedBroker, wire: Wire) -> None:
    response = wire.ask(DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])]))
    [voter] = response.topics[0].partitions[0].current_voters
    meta = read_meta_properties(kafka.directory)
    assert meta is not None
    assert voter.replica_directory_id == meta.directory_id
    [listener] = response.nodes[0].listeners
    assert (listener.name, listener.port) == ("PLAINTEXT", kafka.port)


def features(wire: Wire) -> dict[str, int]:
    response = wire.ask(ApiVersionsRequest("test", "1"))
    return {each.name: each.max_version_level for each in response.finalized_features}


def test_features_are_finalized_from_the_start_and_stay(kafka: EmbeddedBroker, wire: Wire) -> None:
    before = features(wire)
    assert before["metadata.version"] == 30
    response = wire.ask(
        UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", 29, upgrade_type=2)])
    )
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    revision = kafka.server.broker.image.finalized_features.revision("metadata.version")
    kafka.restart()
    with Wire(kafka.port) as after:
        assert features(after) == before
    assert kafka.server.broker.image.finalized_features.revision("metadata.version") == revision


def test_a_dead_broker_can_be_unregistered_and_a_live_one_cannot(kafka: EmbeddedBroker, wire: Wire) -> None:
    add_broker(kafka, fenced=True)
    own = kafka.server.broker.broker_id
    codes = [wire.ask(UnregisterBrokerRequest(broker_id)).error_code for broker_id in (SECOND, SECOND, own)]
    assert codes == [ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.INVALID_REQUEST]
