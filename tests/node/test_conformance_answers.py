"""Every field of every administrative response has the right value, in every version that has it."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.client.admin.acls import acl_creation
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclOperation, PatternType, ResourceType
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
from support.admin import more_partitions, new_topic
from support.batches import batch
from support.control import SECOND, add_broker, remove_leader
from support.fields import entry, paths_of, values_of
from support.nodes import APIS
from support.wire import Wire

pytestmark = pytest.mark.kafka_settings(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "broker.rack": "r1",
    }
)

TOPIC, LONG = 2, 5
DYNAMIC_TOPIC, DEFAULT = 1, 5
UNTHROTTLED = {"throttle_time_ms": [0]}

#: Path -> the expected values, or a predicate over them.
Expected = dict[str, Any]


class Text:
    """Equal to any message that contains a part."""

    def __init__(self, part: str) -> None:
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.part in other

    def __repr__(self) -> str:
        return f"...{self.part}..."

    __hash__ = None  # type: ignore[assignment]


def create_topics(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("there")
    request = CreateTopicsRequest([new_topic("t", 2, 1, {"retention.ms": "5"}), new_topic("there")])

    def config(field: str, value: object) -> Callable[[dict[str, list[Any]]], bool]:
        return lambda found: entry(found, "topics.configs.name", "retention.ms")[field] == value

    return request, UNTHROTTLED | {
        "topics": [2],
        "topics.name": ["t", "there"],
        "topics.topic_id": lambda found: found["topics.topic_id"] == [wire.topic_id("t"), ZERO_UUID],
        "topics.error_code": [0, ErrorCode.TOPIC_ALREADY_EXISTS],
        "topics.error_message": [None, Text("there")],
        "topics.topic_config_error_code": [0, 0],
        "topics.num_partitions": [2, -1],
        "topics.replication_factor": [1, -1],
        "topics.configs": lambda found: found["topics.configs"][0] > 30 and found["topics.configs"][1] == 0,
        "topics.configs.name": lambda found: "cleanup.policy" in found["topics.configs.name"],
        "topics.configs.value": config("value", "5"),
        "topics.configs.read_only": config("read_only", False),
        "topics.configs.config_source": config("config_source", DYNAMIC_TOPIC),
        "topics.configs.is_sensitive": config("is_sensitive", False),
    }


def delete_topics(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t")
    names = ["t", "gone"]
    request = DeleteTopicsRequest([DeleteTopicState(name=name) for name in names], names, 5000)
    return request, UNTHROTTLED | {
        "responses": [2],
        "responses.name": names,
        "responses.topic_id": [wire.topic_id("t"), ZERO_UUID],
        "responses.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "responses.error_message": [None, Text("gone")],
    }


def create_partitions(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t")
    request = CreatePartitionsRequest([more_partitions("t", 3), more_partitions("gone", 3)], 5000)
    return request, UNTHROTTLED | {
        "results": [2],
        "results.name": ["t", "gone"],
        "results.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "results.error_message": [None, Text("gone")],
    }


def describe_configs(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t", configs={"segment.bytes": "3000000"})
    resources = [DescribeConfigsResource(TOPIC, name, ["segment.bytes"]) for name in ("t", "gone")]
    request = DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)
    return request, UNTHROTTLED | {
        "results": [2],
        "results.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "results.error_message": lambda found: "gone" in found["results.error_message"][1],
        "results.resource_type": [TOPIC, TOPIC],
        "results.resource_name": ["t", "gone"],
        "results.configs": [1, 0],
        "results.configs.name": ["segment.bytes"],
        "results.configs.value": ["3000000"],
        "results.configs.read_only": [False],
        "results.configs.is_default": [False],
        "results.configs.config_source": [DYNAMIC_TOPIC],
        "results.configs.is_sensitive": [False],
        "results.configs.synonyms": [2],
        "results.configs.synonyms.name": ["segment.bytes", "log.segment.bytes"],
        "results.configs.synonyms.value": ["3000000", "1073741824"],
        "results.configs.synonyms.source": [DYNAMIC_TOPIC, DEFAULT],
        "results.configs.config_type": [3],
        "results.configs.documentation": [Text("segment")],
    }


def incremental_alter_configs(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t")
    edits = [AlterableConfig("retention.ms", 0, "5")]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(TOPIC, name, edits) for name in ("t", "gone")]
    )
    return request, altered()


def alter_configs(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t")
    configs = [Replacement("retention.ms", "5")]
    return AlterConfigsRequest([Replaced(TOPIC, name, configs) for name in ("t", "gone")]), altered()


def altered() -> Expected:
    return UNTHROTTLED | {
        "responses": [2],
        "responses.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "responses.error_message": lambda found: "gone" in found["responses.error_message"][1],
        "responses.resource_type": [TOPIC, TOPIC],
        "responses.resource_name": ["t", "gone"],
    }


def two_acls(wire: Wire) -> None:
    acls = [
        allow(AclOperation.READ),
        allow(
            AclOperation.WRITE, ResourceType.GROUP, "g-", pattern_type=PatternType.PREFIXED, host="10.0.0.1"
        ),
    ]
    results = wire.ask(CreateAclsRequest([acl_creation(acl) for acl in acls])).results
    assert [result.error_code for result in results] == [0, 0]


def acls_below(prefix: str, resource: str) -> Expected:
    return {
        f"{resource}resource_type": [2, 3],
        f"{resource}resource_name": ["t", "g-"],
        f"{resource}pattern_type": [3, 4],
        f"{prefix}principal": ["User:alice", "User:alice"],
        f"{prefix}host": ["*", "10.0.0.1"],
        f"{prefix}operation": [3, 4],
        f"{prefix}permission_type": [3, 3],
    }


def describe_acls(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    two_acls(wire)
    return DescribeAclsRequest(**EVERY_ACL), UNTHROTTLED | acls_below("resources.acls.", "resources.") | {
        "error_code": [0],
        "error_message": lambda found: not found["error_message"][0],
        "resources": [2],
        "resources.acls": [1, 1],
    }


def create_acls(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    acls = [allow(AclOperation.READ), allow(AclOperation.READ, principal="nobody")]
    return CreateAclsRequest([acl_creation(acl) for acl in acls]), UNTHROTTLED | {
        "results": [2],
        "results.error_code": [0, ErrorCode.INVALID_REQUEST],
        "results.error_message": lambda found: "nobody" in found["results.error_message"][1],
    }


def delete_acls(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    two_acls(wire)
    request = DeleteAclsRequest([DeleteAclsFilter(**EVERY_ACL)])
    inner = "filter_results.matching_acls."
    return request, UNTHROTTLED | acls_below(inner, inner) | {
        "filter_results": [1],
        "filter_results.error_code": [0],
        "filter_results.error_message": lambda found: not found["filter_results.error_message"][0],
        "filter_results.matching_acls": [2],
        f"{inner}error_code": [0, 0],
        f"{inner}error_message": lambda found: not any(found[f"{inner}error_message"]),
    }


def elect_leaders(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t", partitions=2)
    remove_leader(kafka, "t")
    inner = "replica_election_results.partition_result"
    return ElectLeadersRequest(0, [TopicPartitions("t", [0, 5])]), UNTHROTTLED | {
        "error_code": [0],
        "replica_election_results": [1],
        "replica_election_results.topic": ["t"],
        inner: [2],
        f"{inner}.partition_id": [0, 5],
        f"{inner}.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        f"{inner}.error_message": lambda found: (
            not found[f"{inner}.error_message"][0] and "5" in found[f"{inner}.error_message"][1]
        ),
    }


def alter_partition_reassignments(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t")
    add_broker(kafka)
    partitions = [ReassignablePartition(0, [SECOND]), ReassignablePartition(5, [SECOND])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])
    return request, UNTHROTTLED | {
        "allow_replication_factor_change": [True],
        "error_code": [0],
        "error_message": lambda found: not found["error_message"][0],
        "responses": [1],
        "responses.name": ["t"],
        "responses.partitions": [2],
        "responses.partitions.partition_index": [0, 5],
        "responses.partitions.error_code": [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        "responses.partitions.error_message": lambda found: (
            "5" in found["responses.partitions.error_message"][1]
        ),
    }


def describe_log_dirs(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    kafka.create_topic("t", partitions=2)
    data = batch(b"some value")
    wire.produce("t", data, partition=1)
    return DescribeLogDirsRequest([DescribableLogDirTopic("t", [1])]), UNTHROTTLED | {
        "error_code": [0],
        "results": [1],
        "results.error_code": [0],
        "results.log_dir": [str(kafka.directory)],
        "results.topics": [1],
        "results.topics.name": ["t"],
        "results.topics.partitions": [1],
        "results.topics.partitions.partition_index": [1],
        "results.topics.partitions.partition_size": [len(data)],
        "results.topics.partitions.offset_lag": [0],
        "results.topics.partitions.is_future_key": [False],
        "results.total_bytes": lambda found: found["results.total_bytes"][0] > 0,
        "results.usable_bytes": lambda found: (
            0 < found["results.usable_bytes"][0] <= found["results.total_bytes"][0]
        ),
        "results.is_cordoned": [False],
    }


def describe_cluster(kafka: EmbeddedBroker, wire: Wire) -> tuple[Message, Expected]:
    own = kafka.server.broker.broker_id
    return DescribeClusterRequest(include_cluster_authorized_operations=True), UNTHROTTLED | {
        "error_code": [0],
        "error_message": [None],
        "endpoint_type": [1],
        "cluster_id": [kafka.server.broker.cluster_id],
        "controller_id": [own],
        "brokers": [1],
        "brokers.broker_id": [own],
        "brokers.host": ["127.0.0.1"],
        "brokers.port": [kafka.port],
        "brokers.rack": ["r1"],
        "brokers.is_fenced": [False],
        "cluster_authorized_operations": lambda found: found["cluster_authorized_operations"][0] > 0,
    }


SCENARIOS = {
    scenario.__name__: (scenario, key)
    for scenario, key in (
        (create_topics, 19),
        (delete_topics, 20),
        (describe_acls, 29),
        (create_acls, 30),
        (delete_acls, 31),
        (describe_configs, 32),
        (alter_configs, 33),
        (describe_log_dirs, 35),
        (create_partitions, 37),
        (elect_leaders, 43),
        (incremental_alter_configs, 44),
        (alter_partition_reassignments, 45),
        (describe_cluster, 60),
    )
}
#: Version 0 of the APIs on ACLs supports literal patterns only, and has a test of its own.
FIRST_VERSIONS = {"describe_acls": 1, "delete_acls": 1}
CASES = [
    (name, version)
    for name, (_, key) in SCENARIOS.items()
    for version in range(FIRST_VERSIONS.get(name, APIS[key].versions.first), APIS[key].versions.last + 1)
]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_field_of_a_response_has_the_right_value(
    kafka: EmbeddedBroker, wire: Wire, name: str, version: int
) -> None:
    scenario, _ = SCENARIOS[name]
    request, expected = scenario(kafka, wire)
    found = values_of(wire.ask(request, version), version)
    wrong = {
        path: values
        for path, values in found.items()
        if not (expected[path](found) if callable(expected[path]) else values == expected[path])
    }
    assert wrong == {}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_field_of_a_served_response_is_checked(kafka: EmbeddedBroker, wire: Wire, name: str) -> None:
    scenario, key = SCENARIOS[name]
    _, expected = scenario(kafka, wire)
    spec = APIS[key]
    assert set(expected) == set(paths_of(spec.response))


def test_version_0_of_the_apis_on_acls_supports_literal_patterns_only(
    kafka: EmbeddedBroker, wire: Wire
) -> None:
    two_acls(wire)
    described = wire.ask(DescribeAclsRequest(**EVERY_ACL), 0)
    assert [each.resource_name for each in described.resources] == ["t"]
    prefixed = allow(AclOperation.READ, name="new-", pattern_type=PatternType.PREFIXED)
    assert wire.ask(CreateAclsRequest([acl_creation(prefixed)]), 0).results[0].error_code == 0
    deleted = wire.ask(DeleteAclsRequest([DeleteAclsFilter(**EVERY_ACL)]), 0).filter_results[0]
    assert sorted(each.resource_name for each in deleted.matching_acls) == ["new-", "t"]
    left = wire.ask(DescribeAclsRequest(**EVERY_ACL)).resources
    assert [(each.resource_name, each.pattern_type) for each in left] == [("g-", PatternType.PREFIXED)]


def test_version_0_of_describe_configs_marks_defaults(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"segment.bytes": "3000000"})
    resource = DescribeConfigsResource(TOPIC, "t", ["segment.bytes", "retention.ms"])
    configs = wire.ask(DescribeConfigsRequest([resource]), 0).results[0].configs
    assert {each.name: each.is_default for each in configs} == {"segment.bytes": False, "retention.ms": True}
