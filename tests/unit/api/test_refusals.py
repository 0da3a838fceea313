"""Error responses to a whole request: every requested part has the error."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.api.dispatch import UNEXPECTED
from barnabas.wire.barnabas_messages.describe_acl_decisions import DescribeAclDecisionsRequest
from barnabas.wire.barnabas_messages.describe_acl_use import DescribeAclUseRequest
from barnabas.wire.barnabas_messages.describe_cluster_status import DescribeClusterStatusRequest
from barnabas.wire.barnabas_messages.describe_rebalances import DescribeRebalancesRequest
from barnabas.wire.barnabas_messages.describe_topic_offsets import DescribeTopicOffsetsRequest
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashRequest
from barnabas.wire.barnabas_messages.import_segments import ImportSegmentsRequest, ImportSegmentsTopic
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest, TopicToPurge
from barnabas.wire.barnabas_messages.restore_topic_offsets import RestoreTopicOffsetsRequest
from barnabas.wire.barnabas_messages.rollback_resource import RollbackResourceRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.codec import decode, encode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as Replaced
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestTopic
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.schema import Message, Struct
from support.nodes import APIS
from support.offsets import commit_topics
from support.transactions import marker, write_markers_request

MOVED = [AlterReplicaLogDir("/a", [AlterReplicaLogDirTopic("a", [3, 4]), AlterReplicaLogDirTopic("b", [5])])]
ID = b"i" * 16
ERROR = KafkaError(ErrorCode.INVALID_REQUEST, "why not")
WHOLE = ("",)

#: request -> its parts in the error response, in order; WHOLE for an API without parts
REQUESTS: list[tuple[Message, tuple[object, ...]]] = [
    (
        ProduceRequest(
            topic_data=[
                TopicProduceData(name="a", partition_data=[PartitionProduceData(index=n) for n in (3, 4)]),
                TopicProduceData(name="b", topic_id=ID, partition_data=[PartitionProduceData(index=5)]),
            ]
        ),
        (3, 4, 5),
    ),
    (
        FetchRequest(
            topics=[
                FetchTopic(topic="a", partitions=[FetchPartition(partition=n) for n in (3, 4)]),
                FetchTopic(topic="b", partitions=[FetchPartition(partition=5)]),
            ]
        ),
        ("", 3, 4, 5),
    ),
    (
        ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name="a", partitions=[ListOffsetsPartition(partition_index=n) for n in (3, 4)]
                ),
                ListOffsetsTopic(name="b", partitions=[ListOffsetsPartition(partition_index=5)]),
            ]
        ),
        (3, 4, 5),
    ),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]),
        ("", "a", "b"),
    ),
    (FindCoordinatorRequest(key="a", coordinator_keys=["b", "c"]), ("", "b", "c")),
    (ConsumerGroupHeartbeatRequest(group_id="a"), WHOLE),
    (JoinGroupRequest(group_id="a"), WHOLE),
    (SyncGroupRequest(group_id="a"), WHOLE),
    (HeartbeatRequest(group_id="a"), WHOLE),
    (LeaveGroupRequest(group_id="a"), WHOLE),
    (ListGroupsRequest(), WHOLE),
    (DescribeGroupsRequest(groups=["a", "b"]), ("a", "b")),
    (DeleteGroupsRequest(groups_names=["a", "b"]), ("a", "b")),
    (ConsumerGroupDescribeRequest(group_ids=["a", "b"]), ("a", "b")),
    (SaslHandshakeRequest(), WHOLE),
    (ApiVersionsRequest(), WHOLE),
    (CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")]), ("a", "b")),
    (CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="a")]), ("a", "a")),
    (
        DeleteTopicsRequest(
            topic_names=["a"], topics=[DeleteTopicState(name="b"), DeleteTopicState(name=None, topic_id=ID)]
        ),
        ("a", "b", ID),
    ),
    (
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="a", partitions=[DeleteRecordsPartition(partition_index=n) for n in (3, 4)]
                )
            ]
        ),
        (3, 4),
    ),
    (InitProducerIdRequest(), WHOLE),
    (
        AddPartitionsToTxnRequest(
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="a", partitions=[3, 4]),
                AddPartitionsToTxnTopic(name="b", partitions=[5]),
            ]
        ),
        ("", 3, 4, 5),
    ),
    (AddOffsetsToTxnRequest(), WHOLE),
    (EndTxnRequest(), WHOLE),
    (DescribeTransactionsRequest(transactional_ids=["a", "b"]), ("a", "b")),
    (ListTransactionsRequest(), WHOLE),
    (
        write_markers_request(
            marker(9, "a", commit=True, partitions=(3, 4)),
            marker(10, "a", commit=True, partitions=(5,)),
            marker(9, "b", commit=True, partitions=(6,)),
        ),
        (3, 4, 6, 5),
    ),
    (OffsetCommitRequest("g", topics=commit_topics({"a": {3: 1, 4: 1}, "b": {5: 1}})), (3, 4, 5)),
    (OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("a")]), WHOLE),
    (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name) for name in "ab"]), ("", "a", "b")),
    (
        TxnOffsetCommitRequest(
            topics=[
                TxnOffsetCommitRequestTopic("a", [TxnOffsetCommitRequestPartition(n) for n in (3, 4)]),
                TxnOffsetCommitRequestTopic("b", [TxnOffsetCommitRequestPartition(5)]),
            ]
        ),
        (3, 4, 5),
    ),
    (
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic="a", partitions=[OffsetForLeaderPartition(partition=n) for n in (3, 4)]
                )
            ]
        ),
        (3, 4),
    ),
    (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name=name) for name in "ab"]
        ),
        ("a", "b"),
    ),
    (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name) for name in "ab"]), ("a", "b")),
    (AlterConfigsRequest(resources=[Replaced(2, "a"), Replaced(4, "1")]), ("a", "1")),
    (
        IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(2, "a"), AlterConfigsResource(4, "1")]
        ),
        ("a", "1"),
    ),
    (ListConfigResourcesRequest(), WHOLE),
    (AlterReplicaLogDirsRequest(MOVED), (3, 4, 5)),
    (DescribeLogDirsRequest(topics=None), WHOLE),
    (DescribeClusterRequest(), WHOLE),
    (DescribeAclsRequest(), WHOLE),
    (CreateAclsRequest(creations=[AclCreation(), AclCreation()]), ("", "")),
    (DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()]), ("", "")),
    (SaslAuthenticateRequest(), WHOLE),
    (DescribeUserScramCredentialsRequest(), WHOLE),
    (
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="a")],
            upsertions=[ScramCredentialUpsertion(name="a"), ScramCredentialUpsertion(name="b")],
        ),
        ("a", "b"),
    ),
    (CreateDelegationTokenRequest(), WHOLE),
    (RenewDelegationTokenRequest(), WHOLE),
    (ExpireDelegationTokenRequest(), WHOLE),
    (DescribeDelegationTokenRequest(), WHOLE),
    (DescribeClientQuotasRequest(), WHOLE),
    (GetTelemetrySubscriptionsRequest(), WHOLE),
    (PushTelemetryRequest(), WHOLE),
    (AlterClientQuotasRequest([EntryData([EntityData("user", name)]) for name in "ab"]), ("", "")),
    (DescribeProducersRequest(topics=[TopicRequest(name="a", partition_indexes=[3, 4])]), (3, 4)),
    (DescribeTopicPartitionsRequest(topics=[DescribedTopic(name="a"), DescribedTopic(name="b")]), ("a", "b")),
    (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[3, 4])]), ("", 3, 4)),
    (
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name="a", partitions=[ReassignablePartition(n) for n in (3, 4)])]
        ),
        ("", 3, 4),
    ),
    (ListPartitionReassignmentsRequest(), WHOLE),
    (DescribeQuorumRequest(topics=[TopicData("a", [PartitionData(3)])]), WHOLE),
    (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("a", 1)]), WHOLE),
    (UnregisterBrokerRequest(), WHOLE),
    (AddRaftVoterRequest(), WHOLE),
    (RemoveRaftVoterRequest(), WHOLE),
    (UpdateRaftVoterRequest(), WHOLE),
    (RollbackResourceRequest("topic/a"), WHOLE),
    (DescribeAclDecisionsRequest(), WHOLE),
    (DescribeAclUseRequest(), WHOLE),
    (DescribeTrashRequest(), WHOLE),
    (DescribeClusterStatusRequest(), WHOLE),
    (DescribeTopicOffsetsRequest(["a"]), WHOLE),
    (RestoreTopicOffsetsRequest("a", ID), WHOLE),
    (UndeleteTopicRequest("a"), WHOLE),
    (DescribeRebalancesRequest("g"), WHOLE),
    (ImportSegmentsRequest([ImportSegmentsTopic("a", [3, 4])]), (3, 4)),
    (PurgeTopicsRequest([TopicToPurge("a"), TopicToPurge("", ID)]), ("a", ID)),
]

IDENTIFIERS = (
    "index",
    "partition_index",
    "partition_id",
    "partition",
    "name",
    "resource_name",
    "key",
    "topic_id",
    "user",
    "group_id",
    "transactional_id",
)


def parts_in_error(struct: Struct, is_top: bool = True) -> Iterator[tuple[object, int]]:
    """Return (subject, error code) of every struct in a response that has an error code."""
    names = {field.name for field in struct.FIELDS}
    for code in names & {"error_code", "partition_error_code"}:
        found: Any = [getattr(struct, name) for name in IDENTIFIERS if name in names]
        about = next((value for value in found if value not in (None, "", bytes(16))), "")
        yield ("" if is_top else about), getattr(struct, code)
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from parts_in_error(each, False)


def test_every_api_has_an_error_response_with_a_test() -> None:
    assert {request.API_KEY for request, _ in REQUESTS} == set(APIS)


@pytest.mark.parametrize(("request_", "expected"), REQUESTS, ids=lambda value: type(value).__name__)
def test_an_error_response_names_every_part(request_: Message, expected: tuple[object, ...]) -> None:
    refusal = APIS[request_.API_KEY].error_response(request_, ERROR)
    found = list(parts_in_error(refusal))
    assert [about for about, _ in found] == list(expected)
    assert {code for _, code in found} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("error", [ERROR, UNEXPECTED, KafkaError(ErrorCode.INVALID_REQUEST, "ä" * 2000)])
@pytest.mark.parametrize(("request_", "expected"), REQUESTS, ids=lambda value: type(value).__name__)
def test_an_error_response_can_be_encoded_in_every_version_with_a_message_where_possible(
    request_: Message, expected: tuple[object, ...], error: KafkaError
) -> None:
    spec = APIS[request_.API_KEY]
    for version in range(spec.versions.first, spec.versions.last + 1):
        asked = decode(spec.request, version, bytes(encode(request_, version)))
        refusal = spec.error_response(asked, error)
        read = decode(spec.response, version, bytes(encode(refusal, version)))
        for field in read.FIELDS:
            if field.name == "error_message" and version in field.versions:
                assert getattr(read, field.name) == error.message


def test_error_messages_are_in_the_parts_that_have_a_field_for_them() -> None:
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a")])
    assert APIS[37].error_response(request, ERROR).results[0].error_message == "why not"  # type: ignore[attr-defined]
    without = KafkaError(ErrorCode.INVALID_REQUEST)
    assert APIS[37].error_response(request, without).results[0].error_message is None  # type: ignore[attr-defined]


def test_an_error_response_to_a_request_for_all_topics_has_none() -> None:
    assert list(parts_in_error(APIS[3].error_response(MetadataRequest(topics=None), ERROR))) == [
        ("", ERROR.code)
    ]
