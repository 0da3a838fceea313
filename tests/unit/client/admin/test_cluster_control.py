"""Elections, reassignments, features and the quorum: building requests and parsing responses."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import cluster_control
from barnabas.client.admin.cluster_control import (
    ElectionType,
    FeatureDescription,
    QuorumReplica,
    Reassignment,
)
from barnabas.client.core.address import BrokerAddress
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.features import UpgradeType
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.wire.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_partitions_are_sent_by_topic() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("b", 2), TopicPartition("a", 1)]
    request = cluster_control.elect_leaders_request(ElectionType.UNCLEAN, partitions, 5)
    assert [(each.topic, each.partitions) for each in request.topic_partitions or []] == [
        ("a", [0, 1]),
        ("b", [2]),
    ]
    assert (request.election_type, request.timeout_ms) == (1, 5)
    assert cluster_control.elect_leaders_request(ElectionType.PREFERRED, None, 5).topic_partitions is None


def test_each_elected_partition_has_its_result() -> None:
    results = [PartitionResult(0), PartitionResult(1, ErrorCode.ELECTION_NOT_NEEDED, "why")]
    outcomes = cluster_control.parse_elect_leaders_response(
        ElectLeadersResponse(replica_election_results=[ReplicaElectionResult("a", results)])
    )
    assert outcomes[TopicPartition("a", 0)] is None
    error = outcomes[TopicPartition("a", 1)]
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.ELECTION_NOT_NEEDED, "why")


def test_null_cancels_a_reassignment() -> None:
    targets = {TopicPartition("a", 0): (2, 3), TopicPartition("a", 1): None}
    request = cluster_control.alter_reassignments_request(targets, False, 5)
    [topic] = request.topics
    assert [(each.partition_index, each.replicas) for each in topic.partitions] == [(0, [2, 3]), (1, None)]
    assert request.allow_replication_factor_change is False


def test_each_reassigned_partition_has_its_result() -> None:
    partitions = [ReassignablePartitionResponse(3, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "why")]
    response = AlterPartitionReassignmentsResponse(responses=[ReassignableTopicResponse("a", partitions)])
    error = cluster_control.parse_alter_reassignments_response(response)[TopicPartition("a", 3)]
    assert error is not None
    assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_reassignments_are_returned_by_partition() -> None:
    topics = [OngoingTopicReassignment("a", [OngoingPartitionReassignment(1, [2, 1], [2], [1])])]
    moves = cluster_control.parse_list_reassignments_response(
        ListPartitionReassignmentsResponse(topics=topics)
    )
    assert moves == {TopicPartition("a", 1): Reassignment((2, 1), (2,), (1,))}


def test_features_are_returned_by_name_with_supported_and_finalized_levels() -> None:
    response = ApiVersionsResponse(
        supported_features=[SupportedFeatureKey("b", 0, 2), SupportedFeatureKey("a", 1, 1)],
        finalized_features=[FinalizedFeatureKey("b", 2, 2), FinalizedFeatureKey("c", 1, 1)],
    )
    assert cluster_control.parse_features(response) == [
        FeatureDescription("a", (1, 1), 0),
        FeatureDescription("b", (0, 2), 2),
        FeatureDescription("c", None, 1),
    ]


def test_levels_are_requested_with_the_upgrade_type() -> None:
    request = cluster_control.update_features_request({"a": 1}, UpgradeType.SAFE_DOWNGRADE, True, 5)
    [update] = request.feature_updates
    assert (update.feature, update.max_version_level, update.upgrade_type) == ("a", 1, 2)
    assert request.validate_only


def test_the_quorum_is_returned_with_known_addresses() -> None:
    states = [ReplicaState(1, b"d" * 16, 7), ReplicaState(2, b"e" * 16, 6)]
    partition = ResponsePartitionData(0, 0, None, 1, 3, 7, states[:1], states[1:])
    response = DescribeQuorumResponse(
        topics=[ResponseTopicData("__cluster_metadata", [partition])],
        nodes=[Node(1, [Listener("A", "host", 9)])],
    )
    quorum = cluster_control.parse_describe_quorum_response(response)
    assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (1, 3, 7)
    assert quorum.voters == (QuorumReplica(1, b"d" * 16, 7, (("A", BrokerAddress("host", 9)),)),)
    assert quorum.observers == (QuorumReplica(2, b"e" * 16, 6, ()),)


@pytest.mark.parametrize(
    "read",
    [
        lambda: cluster_control.parse_elect_leaders_response(ElectLeadersResponse(error_code=REFUSED)),
        lambda: cluster_control.parse_alter_reassignments_response(
            AlterPartitionReassignmentsResponse(error_code=REFUSED)
        ),
        lambda: cluster_control.parse_list_reassignments_response(
            ListPartitionReassignmentsResponse(error_code=REFUSED)
        ),
        lambda: cluster_control.parse_features(ApiVersionsResponse(error_code=REFUSED)),
        lambda: cluster_control.parse_describe_quorum_response(DescribeQuorumResponse(error_code=REFUSED)),
    ],
)
def test_a_top_level_error_is_raised(read: object) -> None:
    with pytest.raises(KafkaError) as caught:
        read()  # type: ignore[operator]
    assert caught.value.code is REFUSED
