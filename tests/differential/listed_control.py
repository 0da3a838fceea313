"""The intended differences in elections, reassignments, features, the quorum, and timeouts."""

from typing import Any

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from differential.compare import MISSING, Difference
from differential.listed_entry import MORE, Listed, is_at
from differential.sequences import Step, create, topic
from differential.symbols import Name

_A: Any = Name("a")
_VOTER = bytes(range(16))
_API_VERSIONS = ((ApiVersionsRequest("differential", "1"), 4),)
_FEATURES = "A feature is supported if its APIs are served. The metadata store replaces the quorum."


def _is_missing(difference: Difference) -> bool:
    return difference.barnabas is MISSING


def _has_text(difference: Difference) -> bool:
    return difference.kafka in (None, "") and difference.barnabas == "a text"


def _is_feature_of_more_apis(difference: Difference) -> bool:
    updates = getattr(difference.request, "feature_updates", [])
    return any(update.feature not in ("metadata.version", "nope", "") for update in updates)


def _is_new_voter(difference: Difference) -> bool:
    """Whether a request names a voter that could be added."""
    request = difference.request
    assert isinstance(request, AddRaftVoterRequest)
    return (difference.kafka, difference.barnabas) in (
        ("REQUEST_TIMED_OUT", "UNSUPPORTED_VERSION"),
        ("INVALID_REQUEST", "UNSUPPORTED_VERSION"),
        ("INVALID_REQUEST", "DUPLICATE_VOTER"),
    ) and request.voter_directory_id != ZERO_UUID


def add_voter(listener: str) -> Step:
    """Build a request that adds a voter which does not run."""
    return AddRaftVoterRequest(None, 1000, 7, _VOTER, [Listener(listener, "127.0.0.1", 9)]), 1


#: Requests with timeout 0: (API, path of the texts, request, version)
WITHOUT_TIME: tuple[tuple[str, str, Step], ...] = (
    ("CreateTopics", "topics", (CreateTopicsRequest([topic("b")], timeout_ms=0), 7)),
    ("DeleteTopics", "responses", (DeleteTopicsRequest(topic_names=[_A], timeout_ms=0), 5)),
    ("CreatePartitions", "results", (CreatePartitionsRequest([CreatePartitionsTopic(_A, 3, None)], 0), 3)),
    (
        "ElectLeaders", "replica_election_results.partition_result",
        (ElectLeadersRequest(0, [TopicPartitions(_A, [0])], 0), 2),
    ),
    (
        "AlterPartitionReassignments", "",
        (AlterPartitionReassignmentsRequest(0, True, [ReassignableTopic(_A, [ReassignablePartition(0, [1])])]), 1),
    ),
)  # fmt: skip

LISTED_CONTROL = (
    Listed("ApiVersions", "supported_features", "share and streams groups, `kraft.version`",
           _FEATURES, _is_missing, _API_VERSIONS),
    Listed("ApiVersions", "finalized_features", "share and streams groups, `kraft.version`",
           _FEATURES, _is_missing, _API_VERSIONS),
    Listed(
        "ApiVersions", "api_keys", "UpdateRaftVoter",
        "Kafka serves it only on controller listeners, which Barnabas does not have.",
        is_at("api_keys[82]"), _API_VERSIONS,
    ),
    Listed(
        "UpdateFeatures", "(anywhere)", "a feature that Barnabas does not support", _FEATURES,
        _is_feature_of_more_apis,
        ((UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("kraft.version", 1)], validate_only=True), 1),),
    ),
    Listed(
        "AlterPartitionReassignments", "responses.partitions.error_message",
        "NO_REASSIGNMENT_IN_PROGRESS", MORE, _has_text,
        (
            create(topic("a")),
            (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(_A, [ReassignablePartition(0)])]), 1),
        ),
    ),
    Listed(
        "DescribeQuorum", "nodes.listeners", "always",
        "Barnabas has no controller listener, and returns the listeners of the broker.",
        is_at("listeners"), ((DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])]), 2),),
    ),
    Listed(
        "AddRaftVoter", "error_code", "a voter that does not exist yet",
        "Kafka checks whether it can reach the new voter; in Barnabas the controller is always the only "
        "voter, and the error says so.", _is_new_voter, (add_voter("CONTROLLER"),),
    ),
    *(
        Listed(api, f"{path}.error_message".lstrip("."), "a timeout of 0 or less", MORE, _has_text,
               (create(topic("a")), step))
        for api, path, step in WITHOUT_TIME
    ),
)  # fmt: skip
