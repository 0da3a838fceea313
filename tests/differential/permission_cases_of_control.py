"""Requests about the quorum, brokers, features and clients, which name nothing that is "mine"."""

from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from differential.permission_cases_of_groups import Case

CONTROL_CASES: dict[str, Case] = {
    "DescribeQuorum": Case(
        DescribeQuorumRequest(
            topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
        ),
        1,
        True,
    ),
    "UpdateFeatures": Case(
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="nothing", max_version_level=1)], validate_only=True
        ),
        1,
        True,
    ),
    "UnregisterBroker": Case(UnregisterBrokerRequest(broker_id=999), 0),
    "AddRaftVoter": Case(AddRaftVoterRequest(cluster_id=None, timeout_ms=1000, voter_id=999), 0, True),
    "RemoveRaftVoter": Case(RemoveRaftVoterRequest(cluster_id=None, voter_id=999), 0, True),
    "ApiVersions": Case(ApiVersionsRequest("differential", "1"), 4, True),
    "GetTelemetrySubscriptions": Case(GetTelemetrySubscriptionsRequest(), 0, True),
    "PushTelemetry": Case(PushTelemetryRequest(), 0, True),
    "UpdateRaftVoter": Case(UpdateRaftVoterRequest(cluster_id=None, voter_id=999), 0, True),
}
