"""Every number of an enumeration in the administrative protocol has Kafka's meaning."""

from typing import Any

import pytest

from barnabas.client.admin.acls import acl_creation
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.acls import EVERY_ACL, allow
from support.control import remove_leader
from support.wire import Wire

pytestmark = pytest.mark.kafka_settings(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "log.segment.bytes": "2000000",
    }
)

SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(wire: Wire, kind: int, name: str, key: str, value: str | None, operation: int = SET) -> ErrorCode:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
    [response] = wire.ask(IncrementalAlterConfigsRequest([resource])).responses
    return ErrorCode(response.error_code)


def described(wire: Wire, kind: int, name: str, key: str, **fields: bool) -> Any:
    """Return the only entry of a key."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [key])], **fields)
    [result] = wire.ask(request).results
    assert result.error_code == ErrorCode.NONE, result
    return result.configs[0]


# Config resources

#: Resource type -> name (None: this broker's id), a key and a value.
RESOURCES = {
    ResourceKind.TOPIC: ("t", "retention.ms", "5"),
    ResourceKind.BROKER: (None, "log.retention.ms", "5"),
    ResourceKind.BROKER_LOGGER: (None, "org.apache.kafka", "DEBUG"),
    ResourceKind.CLIENT_METRICS: ("m", "interval.ms", "5000"),
    ResourceKind.GROUP: ("g", "consumer.session.timeout.ms", "50000"),
}


@pytest.mark.parametrize("kind", ResourceKind)
def test_configs_of_every_resource_type_are_altered_and_described(
    kafka: EmbeddedBroker, wire: Wire, kind: ResourceKind
) -> None:
    kafka.create_topic("t")
    name, key, value = RESOURCES[kind]
    name = str(kafka.server.broker.broker_id) if name is None else name
    if kind is ResourceKind.BROKER_LOGGER:
        key = "root"
    assert alter(wire, kind, name, key, value) is ErrorCode.NONE, Resource(kind, name)
    assert described(wire, kind, name, key).value == value


@pytest.mark.parametrize("kind", [0, 1, 3, 64, 127])
def test_an_unknown_config_resource_type_is_rejected(wire: Wire, kind: int) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, "x", None)])
    assert {each.error_code for each in wire.ask(request).results} == {ErrorCode.INVALID_REQUEST}
    assert alter(wire, kind, "x", "retention.ms", "1") is ErrorCode.INVALID_REQUEST


def test_every_config_source_is_returned_for_a_value_from_it(kafka: EmbeddedBroker, wire: Wire) -> None:
    """0 (UNKNOWN) is what clients call numbers that they do not know; brokers do not send it."""
    kafka.create_topic("t")
    own = str(kafka.server.broker.broker_id)
    assert alter(wire, 2, "t", "retention.ms", "5") is ErrorCode.NONE
    assert alter(wire, 4, own, "log.retention.ms", "6") is ErrorCode.NONE
    assert alter(wire, 4, "", "log.retention.bytes", "7") is ErrorCode.NONE
    assert alter(wire, 8, own, "root", "DEBUG") is ErrorCode.NONE
    assert alter(wire, 16, "m", "interval.ms", "5000") is ErrorCode.NONE
    assert alter(wire, 32, "g", "consumer.session.timeout.ms", "50000") is ErrorCode.NONE
    assert [
        described(wire, kind, name, key).config_source
        for kind, name, key in (
            (2, "t", "retention.ms"),
            (4, own, "log.retention.ms"),
            (4, own, "log.retention.bytes"),
            (4, own, "log.segment.bytes"),
            (4, own, "num.partitions"),
            (8, own, "root"),
            (16, "m", "interval.ms"),
            (32, "g", "consumer.session.timeout.ms"),
        )
    ] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("operation", "value", "after"),
    [
        (SET, "compact,delete", "compact,delete"),
        (DELETE, None, "delete"),
        (APPEND, "delete", "compact,delete"),
        (SUBTRACT, "compact", ""),
    ],
)
def test_every_config_operation_has_its_effect(
    kafka: EmbeddedBroker, wire: Wire, operation: int, value: str | None, after: str
) -> None:
    kafka.create_topic("t", configs={"cleanup.policy": "compact"})
    assert alter(wire, 2, "t", "cleanup.policy", value, operation) is ErrorCode.NONE
    assert described(wire, 2, "t", "cleanup.policy").value == after


@pytest.mark.parametrize("operation", [-1, 4, 127])
def test_an_unknown_config_operation_is_rejected(kafka: EmbeddedBroker, wire: Wire, operation: int) -> None:
    kafka.create_topic("t")
    assert alter(wire, 2, "t", "retention.ms", "5", operation) is ErrorCode.INVALID_REQUEST
    assert described(wire, 2, "t", "retention.ms").config_source != 1


# ACLs


def made(wire: Wire, acl: AclCreation) -> ErrorCode:
    [result] = wire.ask(CreateAclsRequest([acl])).results
    return ErrorCode(result.error_code)


def acls(wire: Wire, **fields: object) -> list[tuple[int, str, int, int, int]]:
    """Return (resource type, name, pattern type, operation, permission type) of the ACLs that match a filter."""
    response = wire.ask(DescribeAclsRequest(**{**EVERY_ACL, **fields}))
    assert response.error_code == ErrorCode.NONE
    return [
        (of.resource_type, of.resource_name, of.pattern_type, acl.operation, acl.permission_type)
        for of in response.resources
        for acl in of.acls
    ]


REAL_TYPES = [kind for kind in ResourceType if kind > ResourceType.ANY]
REAL_OPERATIONS = [each for each in AclOperation if each > AclOperation.ANY]
REAL_PERMISSIONS = [AclPermission.DENY, AclPermission.ALLOW]


@pytest.mark.parametrize("kind", REAL_TYPES)
def test_acls_are_created_and_found_by_every_resource_type(wire: Wire, kind: ResourceType) -> None:
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else "x"
    neighbour = ResourceType.GROUP if kind is ResourceType.TOPIC else ResourceType.TOPIC
    assert made(wire, acl_creation(allow(AclOperation.DESCRIBE, kind, name))) is ErrorCode.NONE
    assert made(wire, acl_creation(allow(AclOperation.DESCRIBE, neighbour, "y"))) is ErrorCode.NONE
    assert acls(wire, resource_type_filter=kind) == [(kind, name, 3, 8, 3)]
    assert len(acls(wire, resource_type_filter=ResourceType.ANY)) == 2


@pytest.mark.parametrize("operation", REAL_OPERATIONS)
def test_acls_are_created_and_found_by_every_operation(wire: Wire, operation: AclOperation) -> None:
    neighbour = AclOperation.WRITE if operation is AclOperation.READ else AclOperation.READ
    assert made(wire, acl_creation(allow(operation))) is ErrorCode.NONE
    assert made(wire, acl_creation(allow(neighbour))) is ErrorCode.NONE
    assert acls(wire, operation=operation) == [(2, "t", 3, operation, 3)]
    assert len(acls(wire, operation=AclOperation.ANY)) == 2


@pytest.mark.parametrize("permission", REAL_PERMISSIONS)
def test_acls_are_created_and_found_by_each_permission_type(wire: Wire, permission: AclPermission) -> None:
    for each in REAL_PERMISSIONS:
        assert made(wire, acl_creation(allow(AclOperation.READ, permission=each))) is ErrorCode.NONE
    assert acls(wire, permission_type=permission) == [(2, "t", 3, 3, permission)]
    assert len(acls(wire, permission_type=AclPermission.ANY)) == 2


@pytest.mark.parametrize(
    ("pattern_type", "found"),
    [
        (PatternType.ANY, {("ab", 3)}),
        (PatternType.MATCH, {("ab", 3), ("a", 4), ("*", 3)}),
        (PatternType.LITERAL, {("ab", 3)}),
        (PatternType.PREFIXED, set()),
    ],
)
def test_a_filter_by_name_matches_by_its_pattern_type(
    wire: Wire, pattern_type: PatternType, found: set[tuple[str, int]]
) -> None:
    for name, kind in (("ab", 3), ("a", 4), ("*", 3), ("b", 3)):
        acl = allow(AclOperation.READ, name=name, pattern_type=PatternType(kind))
        assert made(wire, acl_creation(acl)) is ErrorCode.NONE
    seen = acls(wire, resource_name_filter="ab", pattern_type_filter=pattern_type)
    assert {(name, kind) for _, name, kind, _, _ in seen} == found


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_any_and_unknown_are_valid_in_filters_only(kafka: EmbeddedBroker, wire: Wire, field: str) -> None:
    acl = acl_creation(allow(AclOperation.READ))
    setattr(acl, field, 1)
    assert made(wire, acl) is ErrorCode.INVALID_REQUEST
    assert acls(wire) == []
    setattr(acl, field, 0)
    with Wire(kafka.port) as doomed:
        doomed.send(CreateAclsRequest([acl]))
        assert doomed.is_closed()
    assert acls(wire) == []


def test_match_is_valid_in_filters_only(wire: Wire) -> None:
    acl = allow(AclOperation.READ, pattern_type=PatternType.MATCH)
    assert made(wire, acl_creation(acl)) is ErrorCode.INVALID_REQUEST
    assert acls(wire) == []


# Elections


@pytest.mark.parametrize(("kind", "needless"), [(0, "preferred"), (1, "leader")])
def test_each_election_type_elects_missing_leaders_and_reports_elections_not_needed(
    kafka: EmbeddedBroker, wire: Wire, kind: int, needless: str
) -> None:
    kafka.create_topic("t", partitions=2)
    remove_leader(kafka, "t", 1)
    [result] = wire.ask(ElectLeadersRequest(kind, [TopicPartitions("t", [0, 1])])).replica_election_results
    codes = {each.partition_id: each.error_code for each in result.partition_result}
    assert codes == {0: ErrorCode.ELECTION_NOT_NEEDED, 1: ErrorCode.NONE}
    messages = {each.partition_id: each.error_message for each in result.partition_result}
    assert needless in messages[0]


@pytest.mark.parametrize("kind", [-1, 2, 127])
def test_an_unknown_election_type_is_rejected(wire: Wire, kind: int) -> None:
    assert wire.ask(ElectLeadersRequest(kind, None)).error_code == ErrorCode.INVALID_REQUEST
