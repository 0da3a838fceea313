"""Every field of every administrative request has an effect on the response or the cluster."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from barnabas.client.admin.acls import acl_creation
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_configs import AlterableConfig as Replacement
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as Replaced
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.schema import Message
from support.acls import EVERY_ACL, allow
from support.admin import create, delete, described, grow, more_partitions, new_topic
from support.control import SECOND, add_broker, remove_leader
from support.fields import paths_of
from support.nodes import APIS
from support.wire import Wire

pytestmark = pytest.mark.kafka_settings(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)

TOPIC, CLIENT_METRICS = 2, 16
NO_TIME = ErrorCode.REQUEST_TIMED_OUT

#: Path of a field -> what was observed because of it, and what is expected.
Heeded = dict[str, tuple[object, object]]


def error_names(results: Sequence[Any]) -> list[str]:
    return [ErrorCode(result.error_code).name for result in results]


def topic_config(wire: Wire, topic: str, key: str) -> str | None:
    resource = DescribeConfigsResource(TOPIC, topic, [key])
    value: str | None = wire.ask(DescribeConfigsRequest([resource])).results[0].configs[0].value
    return value


def partitions_of(wire: Wire, topic: str) -> dict[int, list[int]]:
    return {each.partition_index: each.replica_nodes for each in described(wire, topic).partitions}


def create_topics(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    add_broker(kafka)
    own = kafka.server.broker.broker_id
    made = create(
        wire, new_topic("t", 3, 2, {"retention.ms": "5"}), new_topic("by-hand", assignments={0: [SECOND]})
    )
    dry = create(wire, new_topic("dry", 1, 1), validate_only=True)
    late = wire.ask(CreateTopicsRequest([new_topic("late", 1, 1)], timeout_ms=0)).topics
    replicas = partitions_of(wire, "t")
    return {
        "topics": (list(made), ["t", "by-hand"]),
        "topics.name": (set(kafka.topics()), {"t", "by-hand"}),
        "topics.num_partitions": (set(replicas), {0, 1, 2}),
        "topics.replication_factor": (
            {frozenset(each) for each in replicas.values()},
            {frozenset([own, SECOND])},
        ),
        "topics.assignments": (set(partitions_of(wire, "by-hand")), {0}),
        "topics.assignments.partition_index": (list(partitions_of(wire, "by-hand")), [0]),
        "topics.assignments.broker_ids": (partitions_of(wire, "by-hand")[0], [SECOND]),
        "topics.configs": (topic_config(wire, "by-hand", "retention.ms"), "604800000"),
        "topics.configs.name": (topic_config(wire, "t", "retention.ms"), "5"),
        "topics.configs.value": (topic_config(wire, "t", "retention.ms"), "5"),
        "timeout_ms": (error_names(late), [NO_TIME.name]),
        "validate_only": ((dry["dry"].error_code, "dry" in kafka.topics()), (0, False)),
    }


def delete_topics(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    for name in ("a", "b", "c", "d"):
        kafka.create_topic(name)
    topic_id = wire.topic_id("b")
    by_name, by_id = delete(wire, "a", topic_id)
    late = wire.ask(DeleteTopicsRequest([DeleteTopicState(name="d")], timeout_ms=0)).responses
    old = wire.ask(DeleteTopicsRequest(topic_names=["c"], timeout_ms=5000), 5).responses
    return {
        "topics": (set(kafka.topics()), {"d"}),
        "topics.name": ((by_name.name, by_name.error_code), ("a", 0)),
        "topics.topic_id": ((by_id.topic_id, by_id.error_code), (topic_id, 0)),
        "topic_names": ([(each.name, each.error_code) for each in old], [("c", 0)]),
        "timeout_ms": (error_names(late), [NO_TIME.name]),
    }


def create_partitions(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    for name in ("t", "u"):
        kafka.create_topic(name)
    add_broker(kafka)
    results = grow(wire, more_partitions("t", 2, [[SECOND]]))
    dry = grow(wire, more_partitions("u", 5), validate_only=True)
    late = wire.ask(CreatePartitionsRequest([more_partitions("u", 5)], timeout_ms=0)).results
    counts = kafka.topics()
    return {
        "topics": (list(results), ["t"]),
        "topics.name": (counts["t"], 2),
        "topics.count": (set(partitions_of(wire, "t")), {0, 1}),
        "topics.assignments": (partitions_of(wire, "t")[1], [SECOND]),
        "topics.assignments.broker_ids": (partitions_of(wire, "t")[1], [SECOND]),
        "timeout_ms": (error_names(late), [NO_TIME.name]),
        "validate_only": ((dry["u"].error_code, counts["u"]), (0, 1)),
    }


def describe_configs(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    kafka.create_topic("t", configs={"segment.bytes": "3000000"})

    def ask(kind: int = TOPIC, name: str = "t", keys: list[str] | None = None, **fields: bool) -> Any:
        return wire.ask(
            DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **fields)
        ).results[0]

    key = ["segment.bytes"]
    return {
        "resources": (wire.ask(DescribeConfigsRequest([])).results, []),
        "resources.resource_type": (
            (ask().resource_type, ask(CLIENT_METRICS, "t").resource_type),
            (TOPIC, CLIENT_METRICS),
        ),
        "resources.resource_name": (
            error_names([ask(), ask(name="u")]),
            ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"],
        ),
        "resources.configuration_keys": (
            ([each.name for each in ask(keys=key).configs], len(ask().configs) > 30),
            (key, True),
        ),
        "include_synonyms": (
            [len(ask(keys=key, include_synonyms=flag).configs[0].synonyms) for flag in (False, True)],
            [0, 2],
        ),
        "include_documentation": (
            [
                bool(ask(keys=key, include_documentation=flag).configs[0].documentation)
                for flag in (False, True)
            ],
            [False, True],
        ),
    }


def incremental_alter_configs(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    kafka.create_topic("t", configs={"cleanup.policy": "compact"})

    def ask(kind: int, name: str, key: str, operation: int, value: str, **fields: bool) -> list[str]:
        resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
        return error_names(wire.ask(IncrementalAlterConfigsRequest([resource], **fields)).responses)

    results = [
        ask(TOPIC, "t", "retention.ms", 0, "5"),
        ask(TOPIC, "t", "cleanup.policy", 2, "delete"),
        ask(TOPIC, "t", "retention.bytes", 0, "7", validate_only=True),
    ]
    of_another_type = ask(CLIENT_METRICS, "t", "retention.ms", 0, "5")
    policies = set((topic_config(wire, "t", "cleanup.policy") or "").split(","))
    return {
        "resources": (wire.ask(IncrementalAlterConfigsRequest([])).responses, []),
        "resources.resource_type": (of_another_type, ["INVALID_REQUEST"]),
        "resources.resource_name": (ask(TOPIC, "u", "retention.ms", 0, "5"), ["UNKNOWN_TOPIC_OR_PARTITION"]),
        "resources.configs": (results, [["NONE"]] * 3),
        "resources.configs.name": (topic_config(wire, "t", "retention.ms"), "5"),
        "resources.configs.config_operation": (policies, {"compact", "delete"}),
        "resources.configs.value": (topic_config(wire, "t", "retention.ms"), "5"),
        "validate_only": (topic_config(wire, "t", "retention.bytes"), "-1"),
    }


def alter_configs(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    kafka.create_topic("t", configs={"cleanup.policy": "compact"})

    def ask(kind: int, name: str, key: str, value: str, **fields: bool) -> list[str]:
        resource = Replaced(kind, name, [Replacement(key, value)])
        return error_names(wire.ask(AlterConfigsRequest([resource], **fields)).responses)

    results = [
        ask(TOPIC, "t", "retention.ms", "5"),
        ask(TOPIC, "t", "retention.bytes", "7", validate_only=True),
    ]
    return {
        "resources": (wire.ask(AlterConfigsRequest([])).responses, []),
        "resources.resource_type": (ask(CLIENT_METRICS, "t", "retention.ms", "5"), ["INVALID_REQUEST"]),
        "resources.resource_name": (ask(TOPIC, "u", "retention.ms", "5"), ["UNKNOWN_TOPIC_OR_PARTITION"]),
        "resources.configs": (
            (results, topic_config(wire, "t", "cleanup.policy")),
            ([["NONE"]] * 2, "delete"),
        ),
        "resources.configs.name": (topic_config(wire, "t", "retention.ms"), "5"),
        "resources.configs.value": (topic_config(wire, "t", "retention.ms"), "5"),
        "validate_only": (topic_config(wire, "t", "retention.bytes"), "-1"),
    }


ACLS = [
    allow(AclOperation.READ),
    allow(AclOperation.WRITE, ResourceType.GROUP, "g"),
    allow(AclOperation.READ, name="p", pattern_type=PatternType.PREFIXED),
    allow(AclOperation.READ, principal="User:bob"),
    allow(AclOperation.READ, host="10.0.0.1"),
    allow(AclOperation.READ, permission=AclPermission.DENY),
]

#: Field of a filter -> its value, and which of ACLS it matches.
FILTERS: dict[str, tuple[object, list[int]]] = {
    "resource_type_filter": (ResourceType.GROUP, [1]),
    "resource_name_filter": ("p", [2]),
    "pattern_type_filter": (PatternType.PREFIXED, [2]),
    "principal_filter": ("User:bob", [3]),
    "host_filter": ("10.0.0.1", [4]),
    "operation": (AclOperation.WRITE, [1]),
    "permission_type": (AclPermission.DENY, [5]),
}


def described_acls(wire: Wire, **fields: object) -> set[tuple[object, ...]]:
    return {
        (
            of.resource_type,
            of.resource_name,
            of.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for of in wire.ask(DescribeAclsRequest(**{**EVERY_ACL, **fields})).resources
        for acl in of.acls
    }


def make_acls(wire: Wire) -> list[str]:
    return error_names(wire.ask(CreateAclsRequest([acl_creation(acl) for acl in ACLS])).results)


def describe_acls(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    make_acls(wire)
    return {
        field: (described_acls(wire, **{field: value}), {tuple(ACLS[at]) for at in meant})
        for field, (value, meant) in FILTERS.items()
    }


def create_acls(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    """Create ACLS, of which each differs from the first in one field, or in three."""
    creations = make_acls(wire)
    seen = described_acls(wire)
    differing = {
        "resource_type": 1,
        "resource_name": 1,
        "resource_pattern_type": 2,
        "principal": 3,
        "host": 4,
        "operation": 1,
        "permission_type": 5,
    }
    return {"creations": ((creations, len(seen)), (["NONE"] * 6, 6))} | {
        f"creations.{field}": (tuple(ACLS[at]) in seen, True) for field, at in differing.items()
    }


def delete_acls(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    heeded: Heeded = {"filters": (wire.ask(DeleteAclsRequest([])).filter_results, [])}
    for field, (value, meant) in FILTERS.items():
        make_acls(wire)
        wire.ask(DeleteAclsRequest([DeleteAclsFilter(**{**EVERY_ACL, field: value})]))
        gone = {tuple(acl) for acl in ACLS} - described_acls(wire)
        heeded[f"filters.{field}"] = (gone, {tuple(ACLS[at]) for at in meant})
    return heeded


def elect_leaders(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    kafka.create_topic("t", partitions=2)

    def ask(kind: int, **fields: int) -> dict[str, list[tuple[int, str]]]:
        remove_leader(kafka, "t", 1)
        partitions = None if "everywhere" in fields else [TopicPartitions("t", [1])]
        fields.pop("everywhere", None)
        response = wire.ask(ElectLeadersRequest(kind, partitions, **fields))
        return {
            each.topic: [(one.partition_id, ErrorCode(one.error_code).name) for one in each.partition_result]
            for each in response.replica_election_results
        }

    held = {"t": [(1, "NONE")]}
    unknown = wire.ask(ElectLeadersRequest(7, [TopicPartitions("t", [1])]))
    return {
        "election_type": ((ask(0), ask(1), unknown.error_code), (held, held, ErrorCode.INVALID_REQUEST)),
        "topic_partitions": (ask(0, everywhere=1), held),
        "topic_partitions.topic": (list(ask(0)), ["t"]),
        "topic_partitions.partitions": (ask(0)["t"], [(1, "NONE")]),
        "timeout_ms": (ask(0, timeout_ms=0), {"t": [(1, NO_TIME.name)]}),
    }


def alter_partition_reassignments(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    own = kafka.server.broker.broker_id
    kafka.create_topic("t", partitions=2)
    add_broker(kafka)

    def ask(index: int, replicas: list[int] | None, **fields: Any) -> Any:
        topics = [ReassignableTopic("t", [ReassignablePartition(index, replicas)])]
        return wire.ask(AlterPartitionReassignmentsRequest(topics=topics, **fields))

    late = ask(1, [SECOND], timeout_ms=0)
    refused = ask(1, [own, SECOND], allow_replication_factor_change=False).responses[0].partitions
    begun = ask(1, [SECOND]).responses
    moving = partitions_of(wire, "t")
    ended = ask(1, None).responses[0].partitions
    back = partitions_of(wire, "t")
    return {
        "timeout_ms": (ErrorCode(late.error_code or late.responses[0].partitions[0].error_code), NO_TIME),
        "allow_replication_factor_change": (error_names(refused), ["INVALID_REPLICATION_FACTOR"]),
        "topics": (wire.ask(AlterPartitionReassignmentsRequest(topics=[])).responses, []),
        "topics.name": ([each.name for each in begun], ["t"]),
        "topics.partitions": (error_names(begun[0].partitions), ["NONE"]),
        "topics.partitions.partition_index": (moving, {0: [own], 1: [SECOND, own]}),
        "topics.partitions.replicas": ((error_names(ended), back), (["NONE"], {0: [own], 1: [own]})),
    }


def describe_log_dirs(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    for name in ("t", "u"):
        kafka.create_topic(name, partitions=2)

    def ask(topics: list[DescribableLogDirTopic] | None) -> dict[str, set[int]]:
        [result] = wire.ask(DescribeLogDirsRequest(topics)).results
        return {topic.name: {each.partition_index for each in topic.partitions} for topic in result.topics}

    return {
        "topics": (ask(None), {"t": {0, 1}, "u": {0, 1}}),
        "topics.topic": (ask([DescribableLogDirTopic("u", [0, 1])]), {"u": {0, 1}}),
        "topics.partitions": (ask([DescribableLogDirTopic("t", [1])]), {"t": {1}}),
    }


def describe_cluster(kafka: EmbeddedBroker, wire: Wire) -> Heeded:
    own = kafka.server.broker.broker_id
    add_broker(kafka, fenced=True)

    def ask(**fields: Any) -> Any:
        return wire.ask(DescribeClusterRequest(**fields))

    without, with_operations = ask(), ask(include_cluster_authorized_operations=True)
    fenced = ask(include_fenced_brokers=True).brokers
    return {
        "include_cluster_authorized_operations": (
            (without.cluster_authorized_operations, with_operations.cluster_authorized_operations > 0),
            (-(2**31), True),
        ),
        "endpoint_type": (
            error_names([ask(endpoint_type=kind) for kind in (1, 2, 3)]),
            ["NONE", "MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"],
        ),
        "include_fenced_brokers": (
            (
                [each.broker_id for each in without.brokers],
                {each.broker_id: each.is_fenced for each in fenced},
            ),
            ([own], {own: False, SECOND: True}),
        ),
    }


SCENARIOS: dict[str, tuple[Callable[[EmbeddedBroker, Wire], Heeded], int]] = {
    "create_topics": (create_topics, 19),
    "delete_topics": (delete_topics, 20),
    "describe_acls": (describe_acls, 29),
    "create_acls": (create_acls, 30),
    "delete_acls": (delete_acls, 31),
    "describe_configs": (describe_configs, 32),
    "alter_configs": (alter_configs, 33),
    "describe_log_dirs": (describe_log_dirs, 35),
    "create_partitions": (create_partitions, 37),
    "elect_leaders": (elect_leaders, 43),
    "incremental_alter_configs": (incremental_alter_configs, 44),
    "alter_partition_reassignments": (alter_partition_reassignments, 45),
    "describe_cluster": (describe_cluster, 60),
}


class OldClient(Wire):
    """A client that uses one API at a given version, and the others at their newest."""

    def __init__(self, port: int, key: int, version: int) -> None:
        super().__init__(port)
        self._key, self._version = key, version

    def ask(self, request: Message, version: int | None = None) -> Any:
        of_old = version is None and self._key == request.API_KEY
        return super().ask(request, self._version if of_old else version)


#: DeleteTopics has ids since v6; older versions have another field for names, which its scenario sends with v5.
#: Version 0 of the APIs on ACLs supports literal patterns only, and has a test of its own.
FIRST_VERSIONS = {"delete_topics": 6, "describe_acls": 1, "create_acls": 1, "delete_acls": 1}
CASES = [
    (name, version)
    for name, (_, key) in SCENARIOS.items()
    for version in range(FIRST_VERSIONS.get(name, APIS[key].versions.first), APIS[key].versions.last + 1)
]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_field_of_a_request_has_an_effect(kafka: EmbeddedBroker, name: str, version: int) -> None:
    scenario, key = SCENARIOS[name]
    request = APIS[key].request
    with OldClient(kafka.port, key, version) as wire:
        heeded = scenario(kafka, wire)
    known = set(paths_of(request, version)) | ({"topic_names"} & set(heeded))
    assert {path: seen for path, (seen, _) in heeded.items() if path in known} == {
        path: right for path, (_, right) in heeded.items() if path in known
    }
    assert set(heeded) == set(paths_of(request))
