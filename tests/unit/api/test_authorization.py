"""Permissions of each API: exactly one permission is required, and without it the error is Kafka's.

The same is compared with Apache Kafka in tests/differential/test_authorization.py.
"""

from pathlib import Path
from typing import Any

import pytest

from barnabas.api import authorization
from barnabas.metadata.acls import decide_create_acls, decide_remove_acls
from barnabas.security.operations import OPERATIONS
from barnabas.wire.acls import CLUSTER_NAME, AclBinding, AclPermission, PatternType, ResourceType
from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from barnabas.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
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
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.incremental_alter_configs import AlterableConfig as ConfigChange
from barnabas.wire.messages.incremental_alter_configs import AlterConfigsResource as ChangedResource
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from support.acls import ALICE, AUTHORIZED, ROOT
from support.asked_authorizer import ask_for_each_decision
from support.authorization_rules import (
    ALTER_CLUSTER,
    CLUSTER,
    CLUSTER_REFUSED,
    GROUP,
    GROUP_REFUSED,
    OFFSET_RULES,
    OWN_RULES,
    SEE_CLUSTER,
    SEE_GROUP,
    SEE_TOPIC,
    TOPIC,
    TOPIC_REFUSED,
    TRANSACTION,
    TRANSACTION_REFUSED,
    Permission,
    Rule,
    codes,
    one,
)
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop, turns
from support.nodes import APIS, RunningNode, running_node
from support.offsets import commit_topics
from support.transactions import marker, write_markers_request

#: APIs without a permission: unauthorized parts are omitted from the response, or it has no secrets.
#: Those of delegation tokens need a login; `test_delegation_tokens.py` has their permissions.
OPEN = {"ApiVersions", "DescribeCluster", "DescribeTrash", "ListGroups", "ListTransactions"} | {
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "SaslAuthenticate",
    "SaslHandshake",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
}


def produce() -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(batch(b"v")))
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def describe_configs(kind: int, name: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(resources=[resource])


def alter_configs(kind: int, name: str, key: str) -> AlterConfigsRequest:
    config = AlterableConfig(name=key, value="60000")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    return AlterConfigsRequest(resources=[resource], validate_only=True)


def change_configs(kind: int, name: str, key: str) -> IncrementalAlterConfigsRequest:
    config = ConfigChange(name=key, config_operation=0, value="60000")
    resource = ChangedResource(resource_type=kind, resource_name=name, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def see_configs(resource_type: ResourceType) -> frozenset[Permission]:
    return frozenset({(Op.DESCRIBE_CONFIGS, resource_type), (Op.ALTER_CONFIGS, resource_type)})


ANY_ACL: dict[str, Any] = {
    "resource_type_filter": 1,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
}
TOPIC_KIND, BROKER_KIND, METRICS_KIND, GROUP_KIND = 2, 4, 16, 32


RULES = [
    *OWN_RULES,
    Rule(
        ConsumerGroupHeartbeatRequest(group_id="t", member_id="m", member_epoch=1),
        one(Op.READ, GROUP),
        GROUP_REFUSED,
    ),
    Rule(ConsumerGroupDescribeRequest(group_ids=["t"]), SEE_GROUP, GROUP_REFUSED),
    Rule(produce(), one(Op.WRITE, TOPIC), TOPIC_REFUSED, 12),
    Rule(
        FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])]),
        one(Op.READ, TOPIC),
        TOPIC_REFUSED,
        12,
    ),
    Rule(
        FetchRequest(replica_id=2, topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])]),
        one(Op.CLUSTER_ACTION, CLUSTER),
        TOPIC_REFUSED,
        12,
    ),
    Rule(
        ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0)])]
        ),
        SEE_TOPIC,
        TOPIC_REFUSED,
    ),
    Rule(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), SEE_TOPIC, TOPIC_REFUSED),
    Rule(FindCoordinatorRequest(key_type=0, coordinator_keys=["t"]), SEE_GROUP, GROUP_REFUSED),
    Rule(FindCoordinatorRequest(key_type=0, key="t"), SEE_GROUP, GROUP_REFUSED, 3),
    Rule(
        FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]),
        frozenset({(Op.DESCRIBE, TRANSACTION), (Op.WRITE, TRANSACTION)}),
        TRANSACTION_REFUSED,
    ),
    Rule(
        FindCoordinatorRequest(key_type=2, coordinator_keys=["t"]),
        one(Op.CLUSTER_ACTION, CLUSTER),
        CLUSTER_REFUSED,
    ),
    Rule(JoinGroupRequest(group_id="t"), one(Op.READ, GROUP), GROUP_REFUSED),
    Rule(
        SyncGroupRequest(group_id="t", protocol_type="a", protocol_name="b"),
        one(Op.READ, GROUP),
        GROUP_REFUSED,
    ),
    Rule(HeartbeatRequest(group_id="t"), one(Op.READ, GROUP), GROUP_REFUSED),
    Rule(LeaveGroupRequest(group_id="t"), one(Op.READ, GROUP), GROUP_REFUSED),
    Rule(DescribeGroupsRequest(groups=["t"]), SEE_GROUP, GROUP_REFUSED),
    Rule(DeleteGroupsRequest(groups_names=["t"]), one(Op.DELETE, GROUP), GROUP_REFUSED),
    Rule(
        CreateTopicsRequest(
            topics=[CreatableTopic(name="tnew", num_partitions=1, replication_factor=1)], validate_only=True
        ),
        one(Op.CREATE, TOPIC) | one(Op.CREATE, CLUSTER),
        TOPIC_REFUSED,
    ),
    Rule(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000),
        one(Op.DELETE, TOPIC),
        TOPIC_REFUSED,
    ),
    Rule(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])
            ]
        ),
        one(Op.DELETE, TOPIC),
        TOPIC_REFUSED,
    ),
    Rule(
        InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1),
        one(Op.WRITE, TOPIC) | one(Op.IDEMPOTENT_WRITE, CLUSTER),
        CLUSTER_REFUSED,
    ),
    Rule(
        InitProducerIdRequest(transactional_id="t", producer_id=-1, producer_epoch=-1),
        one(Op.WRITE, TRANSACTION),
        TRANSACTION_REFUSED,
    ),
    Rule(
        OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition(partition=0)])]
        ),
        SEE_TOPIC | one(Op.CLUSTER_ACTION, CLUSTER),
        TOPIC_REFUSED,
    ),
    Rule(DescribeAclsRequest(**ANY_ACL), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(
        CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=2,
                    resource_name="x",
                    resource_pattern_type=3,
                    principal="User:bob",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
        ALTER_CLUSTER,
        CLUSTER_REFUSED,
    ),
    Rule(
        DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY_ACL, resource_name_filter="nothing")]),
        ALTER_CLUSTER,
        CLUSTER_REFUSED,
    ),
    Rule(describe_configs(TOPIC_KIND, "t"), see_configs(TOPIC), TOPIC_REFUSED),
    Rule(describe_configs(BROKER_KIND, "1"), see_configs(CLUSTER), CLUSTER_REFUSED),
    Rule(describe_configs(METRICS_KIND, "t"), see_configs(CLUSTER), CLUSTER_REFUSED),
    Rule(describe_configs(GROUP_KIND, "t"), see_configs(GROUP), GROUP_REFUSED),
    Rule(alter_configs(TOPIC_KIND, "t", "retention.ms"), one(Op.ALTER_CONFIGS, TOPIC), TOPIC_REFUSED),
    Rule(change_configs(TOPIC_KIND, "t", "retention.ms"), one(Op.ALTER_CONFIGS, TOPIC), TOPIC_REFUSED),
    Rule(
        change_configs(BROKER_KIND, "1", "log.retention.ms"), one(Op.ALTER_CONFIGS, CLUSTER), CLUSTER_REFUSED
    ),
    Rule(change_configs(METRICS_KIND, "t", "interval.ms"), one(Op.ALTER_CONFIGS, CLUSTER), CLUSTER_REFUSED),
    Rule(
        change_configs(GROUP_KIND, "t", "consumer.session.timeout.ms"),
        one(Op.ALTER_CONFIGS, GROUP),
        GROUP_REFUSED,
    ),
    Rule(ListConfigResourcesRequest(resource_types=[16]), see_configs(CLUSTER), CLUSTER_REFUSED),
    Rule(
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path="/nowhere", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]
                )
            ]
        ),
        ALTER_CLUSTER,
        CLUSTER_REFUSED,
    ),
    Rule(DescribeLogDirsRequest(topics=[]), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)],
            timeout_ms=1000,
            validate_only=True,
        ),
        one(Op.ALTER, TOPIC),
        TOPIC_REFUSED,
    ),
    Rule(ElectLeadersRequest(topic_partitions=[]), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(AlterPartitionReassignmentsRequest(topics=[]), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(ListPartitionReassignmentsRequest(topics=None), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(DescribeUserScramCredentialsRequest(users=None), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="bob", mechanism=1)]),
        ALTER_CLUSTER,
        CLUSTER_REFUSED,
    ),
    Rule(DescribeClientQuotasRequest(), see_configs(CLUSTER), CLUSTER_REFUSED),
    Rule(
        AlterClientQuotasRequest(
            entries=[EntryData(entity=[EntityData(entity_type="user", entity_name="bob")])],
            validate_only=True,
        ),
        one(Op.ALTER_CONFIGS, CLUSTER),
        CLUSTER_REFUSED,
    ),
    Rule(
        write_markers_request(marker(9, "t", commit=True)),
        frozenset({(Op.CLUSTER_ACTION, CLUSTER), (Op.ALTER, CLUSTER)}),
        CLUSTER_REFUSED,
    ),
    Rule(AddPartitionsToTxnRequest(), one(Op.CLUSTER_ACTION, CLUSTER), CLUSTER_REFUSED),
    Rule(
        AddOffsetsToTxnRequest(transactional_id="t", group_id="t"),
        one(Op.WRITE, TRANSACTION),
        TRANSACTION_REFUSED,
        granted=one(Op.READ, GROUP),
    ),
    Rule(
        AddOffsetsToTxnRequest(transactional_id="t", group_id="t"),
        one(Op.READ, GROUP),
        GROUP_REFUSED,
        granted=one(Op.WRITE, TRANSACTION),
    ),
    Rule(EndTxnRequest(transactional_id="t"), one(Op.WRITE, TRANSACTION), TRANSACTION_REFUSED),
    Rule(
        DescribeTransactionsRequest(transactional_ids=["t"]),
        one(Op.WRITE, TRANSACTION) | one(Op.DESCRIBE, TRANSACTION),
        TRANSACTION_REFUSED,
    ),
    *OFFSET_RULES,
    Rule(DescribeQuorumRequest(), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(UpdateFeaturesRequest(validate_only=True), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(UnregisterBrokerRequest(broker_id=99), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(AddRaftVoterRequest(voter_id=99), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(RemoveRaftVoterRequest(voter_id=99), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(UpdateRaftVoterRequest(voter_id=99), one(Op.CLUSTER_ACTION, CLUSTER), CLUSTER_REFUSED),
    Rule(
        DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]),
        one(Op.READ, TOPIC),
        TOPIC_REFUSED,
    ),
    Rule(
        DescribeTopicPartitionsRequest(topics=[DescribedTopic(name="t")], response_partition_limit=10),
        SEE_TOPIC,
        TOPIC_REFUSED,
    ),
]

EVERY_PERMISSION: list[Permission] = [
    (operation, resource_type)
    for resource_type, operations in OPERATIONS.items()
    for operation in sorted(operations)
]


def label(rule: Rule) -> str:
    return type(rule.request).__name__.removesuffix("Request")


def binding(permission: Permission) -> AclBinding:
    operation, resource_type = permission
    name, pattern_type = "t", PatternType.PREFIXED
    if resource_type is CLUSTER:
        name, pattern_type = CLUSTER_NAME, PatternType.LITERAL
    return AclBinding(resource_type, name, pattern_type, ALICE, "*", operation, AclPermission.ALLOW)


async def permit(running: RunningNode, *permissions: Permission) -> None:
    """Give Alice these permissions only."""
    await running.broker.metadata.write(
        lambda image: decide_remove_acls(image.acls, list(image.acls.values()))
    )
    bindings = [binding(permission) for permission in permissions]
    await running.broker.metadata.write(lambda image: decide_create_acls(image.acls, bindings))
    if "t" not in running.broker.image.topics:
        await running.create(new_topic("t"))


async def make_group(running: RunningNode) -> None:
    """Create group t with a committed offset."""
    await permit(running, (Op.READ, GROUP), (Op.READ, TOPIC))
    await running.create(new_topic("__consumer_offsets"))
    request = OffsetCommitRequest("t", topics=commit_topics({"t": {0: 5}}))
    while (await running.ask(request, 9)).topics[0].partitions[0].error_code:
        await turns(1)


async def refused(running: RunningNode, rule: Rule) -> set[ErrorCode]:
    """Return the authorization errors in Alice's response."""
    answer = await running.ask(rule.request, rule.version)
    return {
        ErrorCode(code) for code in codes(answer) if ErrorCode(code).name.endswith("AUTHORIZATION_FAILED")
    }


def audited_refusals(running: RunningNode) -> set[ErrorCode]:
    """Return Alice's authorization errors in the audit."""
    records = running.broker.image.audit.values()
    return {
        ErrorCode[each.error]
        for record in records
        if record.actor.principal == ALICE
        for each in record.refusals
    }


def test_every_api_has_a_rule_or_is_open() -> None:
    assert {APIS[rule.request.API_KEY].name for rule in RULES} | OPEN == {spec.name for spec in APIS.values()}


@pytest.mark.parametrize("is_asked", [False, True], ids=["by ACLs", "by a user's class"])
@pytest.mark.parametrize("rule", RULES, ids=label)
def test_each_required_permission_is_sufficient_and_no_other_is(
    tmp_path: Path, rule: Rule, *, is_asked: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, audited=True, **AUTHORIZED) as running:
            running.connection.principal = ALICE
            if is_asked:
                ask_for_each_decision(running.broker)
            if isinstance(rule.request, OffsetDeleteRequest):  # a group that does not exist has no partitions
                await make_group(running)
            await permit(running, *rule.granted)
            assert await refused(running, rule.without_validate_only) == {rule.code}
            is_audited = APIS[rule.request.API_KEY].audit is not None
            assert audited_refusals(running) == ({rule.code} if is_audited else set())
            for permission in EVERY_PERMISSION:
                await permit(running, *(rule.granted | {permission}))
                expected = set() if permission in rule.permissions else {rule.code}
                assert await refused(running, rule) == expected, permission

    scenario()


@on_loop
async def test_the_response_on_all_topics_has_each_principals_authorized_topics(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:

        async def seen_by(principal: str) -> list[str]:
            running.connection.principal = principal
            response = await running.ask(MetadataRequest(topics=None))
            return [topic.name for topic in response.topics]

        await running.create(new_topic("other"))
        await permit(running)
        for _ in range(2):
            assert await seen_by(ROOT) == ["other", "t"]
            assert await seen_by(ALICE) == []
        await permit(running, (Op.DESCRIBE, TOPIC))
        for _ in range(2):
            assert await seen_by(ALICE) == ["t"]
            assert await seen_by("User:bob") == []


@pytest.mark.parametrize(
    ("resource_type", "code"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ResourceType.DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ],
)
def test_an_authorization_error_has_its_resource_types_code_and_names_the_permission(
    resource_type: ResourceType, code: ErrorCode
) -> None:
    error = authorization.authorization_error(Op.ALTER, resource_type, "name")
    assert error.code is code
    assert "ALTER" in error.message
