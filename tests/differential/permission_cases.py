"""A request for every API, on resources named "mine" and on others."""

from typing import Any

from barnabas.client.admin.acls import acl_creation
from barnabas.wire.acls import (
    AclOperation,
    ResourceType,
)
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
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
)
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
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
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_producers import TopicRequest as ProducersTopic
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.elect_leaders import TopicPartitions as ElectedTopic
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from barnabas.wire.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from differential.batches import Batch
from differential.permission_cases_of_groups import GROUP_CASES, Case
from differential.permissions import ANY_ACL, Grant
from differential.sequences import topic
from differential.symbols import Name, TopicId
from differential.transactions import end

_Op = AclOperation
_Type = ResourceType


def _name(text: str) -> Any:
    return Name(text)


def _topic_id(text: str) -> Any:
    return TopicId(text)


def _records(**fields: Any) -> Any:
    return Batch(**fields)


_NOWHERE = Grant(_Op.READ, _Type.GROUP, host="127.9.9.9").binding("nobody", "")
NAMES = ("mine", "other", "mine-missing", "other-missing")
THERE = ("mine", "other")


def _produce(acks: int = -1, transactional_id: str | None = None, by_id: bool = False) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name="" if by_id else _name(name),
                topic_id=_topic_id(name) if by_id else bytes(16),
                partition_data=[
                    PartitionProduceData(
                        index=0, records=_records(flaw="transactional" if transactional_id else None)
                    )
                ],
            )
            for name in (NAMES[:3] if by_id else NAMES)  # a missing topic has no id
        ],
    )


def _fetch(by_id: bool = False, replica_id: int = -1) -> FetchRequest:
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic="" if by_id else _name(name),
                topic_id=_topic_id(name) if by_id else bytes(16),
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 10)],
            )
            for name in NAMES
        ],
    )


def _metadata(by_id: bool = False, **fields: Any) -> MetadataRequest:
    topics = [
        MetadataRequestTopic(name=None, topic_id=_topic_id(name))
        if by_id
        else MetadataRequestTopic(name=_name(name))
        for name in NAMES
    ]
    return MetadataRequest(topics=topics, **fields)


def _resources() -> list[tuple[int, Any]]:
    """Return (config resource type, name): topics, broker 1, the default of all brokers, its loggers, groups,
    client metrics.
    """
    topics = [(2, _name(name)) for name in NAMES]
    return [
        *topics,
        (4, "1"),
        (4, ""),
        (8, "1"),
        (16, "mine-metrics"),
        (32, "mine-group"),
        (32, "other-group"),
    ]


def _alterable() -> list[tuple[int, Any, str, str]]:
    """Return (config resource type, name, key, value) of valid changes."""
    topics = [(2, _name(name), "retention.ms", "3600000") for name in NAMES]
    others = [
        (4, "1", "log.cleaner.threads", "1"),
        (8, "1", "kafka.server.KafkaServer", "INFO"),
        (16, "mine-metrics", "interval.ms", "1000"),
        (32, "mine-group", "consumer.session.timeout.ms", "50000"),
        (32, "other-group", "consumer.session.timeout.ms", "50000"),
    ]
    return topics + others


CASES: dict[str, Case] = {
    "Produce": Case(_produce(), 9),
    "Produce by id": Case(_produce(by_id=True), 13),
    "Produce without an answer": Case(_produce(acks=0), 9),
    "Fetch": Case(_fetch(), 12),
    "Fetch of a topic without a name": Case(
        FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic("", partitions=[FetchPartition(0)])]), 12
    ),
    "Fetch by id": Case(_fetch(by_id=True), 13),
    "Fetch as a replica": Case(_fetch(replica_id=2), 12, refusals_only=True),
    "ListOffsets": Case(
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=_name(name), partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)]
                )
                for name in NAMES
            ],
        ),
        5,
    ),
    "Metadata": Case(_metadata(allow_auto_topic_creation=False), 9),
    "Metadata with operations": Case(
        _metadata(
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
        10,
    ),
    "Metadata by id": Case(_metadata(by_id=True, allow_auto_topic_creation=False), 12),
    "Metadata of all": Case(
        MetadataRequest(
            topics=None,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
        9,
    ),
    "WriteTxnMarkers": Case(end(9, ("mine", 0), ("other", 0), commit=True)[0], 1),
    "FindCoordinator of groups": Case(
        FindCoordinatorRequest(key_type=0, coordinator_keys=["mine-group", "other-group"]), 4
    ),
    "FindCoordinator of a group": Case(FindCoordinatorRequest(key_type=0, key="mine-group"), 2),
    "FindCoordinator of a transaction": Case(FindCoordinatorRequest(key_type=1, key="mine-tx"), 3),
    "FindCoordinator of another's group": Case(FindCoordinatorRequest(key_type=0, key="other-group"), 0),
    "FindCoordinator of another's transaction": Case(FindCoordinatorRequest(key_type=1, key="other-tx"), 1),
    "FindCoordinator of an unknown type": Case(
        FindCoordinatorRequest(key_type=7, coordinator_keys=["mine"]), 6
    ),
    "FindCoordinator of transactions": Case(
        FindCoordinatorRequest(key_type=1, coordinator_keys=["mine-tx", "other-tx"]), 4
    ),
    "FindCoordinator of share groups": Case(
        FindCoordinatorRequest(key_type=2, coordinator_keys=["mine-group:AAAAAAAAAAAAAAAAAAAAAQ:0"]), 6, True
    ),
    **GROUP_CASES,
    "CreateTopics": Case(
        CreateTopicsRequest(
            topics=[topic("mine-new"), topic("other-new"), topic("mine"), topic("other")],
            timeout_ms=10_000,
            validate_only=True,
        ),
        7,
    ),
    "CreateTopics twice the same": Case(
        CreateTopicsRequest(
            topics=[topic("mine-new"), topic("mine-new"), topic("other-new"), topic("other-new")],
            timeout_ms=10_000,
            validate_only=True,
        ),
        5,
    ),
    "Metadata that creates topics": Case(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=_name(name)) for name in ("mine-d", "other-d")],
            include_topic_authorized_operations=True,
        ),
        9,
        True,
    ),
    "DeleteTopics": Case(
        DeleteTopicsRequest(
            topic_names=[_name("mine-d"), _name("other-d"), _name("mine-missing")], timeout_ms=10_000
        ),
        5,
    ),
    "DeleteTopics by id": Case(
        DeleteTopicsRequest(
            topics=[
                DeleteTopicState(name=None, topic_id=_topic_id(name))
                for name in ("mine-d", "other-d", "gone")
            ],
            timeout_ms=10_000,
        ),
        6,
    ),
    "DeleteTopics by name": Case(
        DeleteTopicsRequest(
            topics=[
                DeleteTopicState(name=_name(name), topic_id=bytes(16))
                for name in ("mine-d", "mine-d", "other-d", "other-missing", "mine-missing")
            ],
            timeout_ms=10_000,
        ),
        6,
    ),
    "DeleteRecords": Case(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=_name(name), partitions=[DeleteRecordsPartition(partition_index=0, offset=0)]
                )
                for name in NAMES
            ],
            timeout_ms=10_000,
        ),
        2,
    ),
    "InitProducerId": Case(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4),
    "InitProducerId of mine": Case(
        InitProducerIdRequest(transactional_id="mine-tx", transaction_timeout_ms=60_000), 4, True
    ),
    "OffsetForLeaderEpoch": Case(
        OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    topic=_name(name), partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
                )
                for name in NAMES
            ],
        ),
        4,
    ),
    "DescribeAcls": Case(
        DescribeAclsRequest(
            **ANY_ACL, resource_name_filter="nowhere", principal_filter=None, host_filter=None
        ),
        3,
    ),
    "CreateAcls": Case(
        CreateAclsRequest(
            creations=[
                acl_creation(_NOWHERE),
                acl_creation(_NOWHERE._replace(resource_name="")),
            ]
        ),
        3,
    ),
    "DeleteAcls": Case(
        DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    **ANY_ACL, resource_name_filter=None, principal_filter=None, host_filter="127.9.9.9"
                )
            ]
        ),
        3,
    ),
    "DescribeAcls with a zero": Case(DescribeAclsRequest(**(ANY_ACL | {"operation": 0})), 3),
    "DescribeAcls with an unknown number": Case(DescribeAclsRequest(**(ANY_ACL | {"operation": 99})), 3),
    "DeleteAcls with a zero and not": Case(
        DeleteAclsRequest(
            filters=[DeleteAclsFilter(**ANY_ACL), DeleteAclsFilter(**(ANY_ACL | {"pattern_type_filter": 0}))]
        ),
        3,
    ),
    "DeleteAcls with unknown numbers": Case(
        DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(**(ANY_ACL | {field: 99})) for field in ("operation", "permission_type")
            ]
        ),
        3,
    ),
    "DescribeConfigs": Case(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=["none"])
                for kind, name in _resources()
            ]
        ),
        4,
    ),
    "AlterConfigs": Case(
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)]
                )
                for kind, name, key, value in _alterable()
                if kind != 8
            ],
            validate_only=True,
        ),
        2,
    ),
    "IncrementalAlterConfigs": Case(
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[IncrementalConfig(name=key, config_operation=0, value=value)],
                )
                for kind, name, key, value in _alterable()
            ],
            validate_only=True,
        ),
        1,
    ),
    "ListConfigResources": Case(ListConfigResourcesRequest(resource_types=[16]), 1),
    "AlterReplicaLogDirs": Case(
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path="/nowhere",
                    topics=[AlterReplicaLogDirTopic(name=_name(name), partitions=[0]) for name in NAMES],
                )
            ]
        ),
        2,
        True,
    ),
    "DescribeLogDirs": Case(DescribeLogDirsRequest(topics=[]), 4, True),
    "CreatePartitions": Case(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=_name(name), count=count, assignments=None)
                for name, count in (("mine", 2), ("other", 2), ("mine-missing", 2), ("other", 3))
            ],
            timeout_ms=10_000,
            validate_only=True,
        ),
        3,
    ),
    "ElectLeaders": Case(
        ElectLeadersRequest(
            election_type=0,
            topic_partitions=[ElectedTopic(topic=_name(name), partitions=[0]) for name in THERE],
            timeout_ms=10_000,
        ),
        2,
    ),
    "AlterPartitionReassignments": Case(
        AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                ReassignableTopic(
                    name=_name("mine"), partitions=[ReassignablePartition(partition_index=0, replicas=None)]
                )
            ],
        ),
        0,
    ),
    "ListPartitionReassignments": Case(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None), 0),
    "DescribeUserScramCredentials": Case(
        DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")]), 0
    ),
    "AlterUserScramCredentials": Case(
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="nobody", mechanism=1)]), 0
    ),
    "DescribeClientQuotas": Case(DescribeClientQuotasRequest(components=[], strict=False), 1),
    "AlterClientQuotas": Case(
        AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[EntityData(entity_type="user", entity_name="mine")],
                    ops=[OpData(key="producer_byte_rate", value=1000.0)],
                )
            ],
            validate_only=True,
        ),
        1,
    ),
    "DescribeCluster": Case(DescribeClusterRequest(include_cluster_authorized_operations=True), 1),
    "DescribeProducers": Case(
        DescribeProducersRequest(
            topics=[ProducersTopic(name=_name(name), partition_indexes=[0]) for name in NAMES]
        ),
        0,
    ),
    **{
        f"DescribeTopicPartitions of {name}": Case(
            DescribeTopicPartitionsRequest(
                topics=[DescribedTopic(name=_name(name))], response_partition_limit=100
            ),
            0,
        )
        for name in NAMES
    },
    "DescribeTopicPartitions of all": Case(
        DescribeTopicPartitionsRequest(topics=[], response_partition_limit=100), 0
    ),
    "Produce in a transaction of mine": Case(_produce(transactional_id="mine-tx"), 9, True),
    "Produce in a transaction of others": Case(_produce(transactional_id="other-tx"), 9, True),
}
