"""Random ACLs on users who log in: both brokers must authorize alike."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from interop.sasl import PLAIN_USERS

from barnabas.client.admin.acls import acl_creation
from barnabas.client.auth.sasl import SaslLogin
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from differential.permissions import ANY_ACL
from differential.sasl import SaslPair, sasl_pair
from support.sasl import log_in
from support.wire import Wire

ROUNDS = 40
TOPICS = ("a", "ab", "abc", "b")
USERS = ("alice", "bob")
FOLLOW_TIMEOUT_S = 10.0

#: All operations on the tested topics; the requests come through the listener without login, whose user is a superuser.
ALL_ACLS = {**ANY_ACL, "resource_name_filter": None, "principal_filter": None, "host_filter": None}

OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
)


@pytest.fixture(scope="module", params=["false", "true"], ids=["closed", "open"])
def pair(request: pytest.FixtureRequest) -> Iterator[SaslPair]:
    """Run both brokers, with each setting of `allow.everyone.if.no.acl.found`."""
    settings = {
        "allow_everyone_if_no_acl_found": request.param,
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    with (
        tempfile.TemporaryDirectory(prefix="principals-") as home,
        sasl_pair(Path(home), **settings) as running,
    ):
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        for port in running.plaintext.values():
            with Wire(port) as wire:
                made = wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
                assert not any(topic.error_code for topic in made.topics)
                producer = InitProducerIdRequest(None, transaction_timeout_ms=60_000)
                while wire.ask(
                    producer, 4
                ).error_code:  # Kafka has no producer ids for a moment after its start
                    time.sleep(0.05)
        yield running


def some_acls(rng: random.Random) -> list[AclBinding]:
    """Return a few ACLs on a few names, so that they overlap."""
    return [
        AclBinding(
            ResourceType.TOPIC,
            rng.choice(["*", "a", "ab", "abc"]),
            rng.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            rng.choice(["User:alice", "User:alice", "User:bob", "User:*", "Group:alice"]),
            rng.choice(["*", "*", "127.0.0.1", "10.0.0.1"]),
            rng.choice(OPERATIONS),
            rng.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
        )
        for _ in range(rng.randint(0, 8))
    ]


def replace_acls(wire: Wire, bindings: Sequence[AclBinding]) -> None:
    """Replace all ACLs, and wait until the broker applies them."""
    wire.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ALL_ACLS)]), 3)
    made = wire.ask(CreateAclsRequest(creations=[acl_creation(binding) for binding in bindings]), 3)
    assert not any(result.error_code for result in made.results)
    deadline_s = time.monotonic() + FOLLOW_TIMEOUT_S
    while described_acls(wire) != set(bindings):
        assert time.monotonic() < deadline_s, bindings
        time.sleep(0.002)


def described_acls(wire: Wire) -> set[tuple[object, ...]]:
    """Return the broker's ACLs."""
    return {
        (
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in wire.ask(DescribeAclsRequest(**ALL_ACLS), 3).resources
        for acl in resource.acls
    }


def decisions(port: int, user: str) -> dict[str, object]:
    """Return a user's permissions: error and operations of each topic, and whether any topic is writable."""
    with Wire(port) as wire:
        assert log_in(wire, SaslLogin("PLAIN", user, PLAIN_USERS[user])).error_code == ErrorCode.NONE
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in TOPICS],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        topics = wire.ask(request, 10).topics
        found: dict[str, object] = {
            topic.name: (ErrorCode(topic.error_code).name, topic.topic_authorized_operations)
            for topic in topics
        }
        everything = wire.ask(MetadataRequest(topics=None), 10).topics
        found["all"] = sorted(topic.name for topic in everything)
        producer = wire.ask(InitProducerIdRequest(None, transaction_timeout_ms=60_000), 4)
        found["producer"] = ErrorCode(producer.error_code).name
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_both_brokers_authorize_the_same_operations(pair: SaslPair, seed: int) -> None:
    bindings = some_acls(random.Random(seed))
    for port in pair.plaintext.values():
        with Wire(port) as wire:
            replace_acls(wire, bindings)
    for user in USERS:
        kafka, barnabas = (decisions(pair.clients[name], user) for name in ("kafka", "barnabas"))
        kafka["all"] = [name for name in kafka["all"] if not name.startswith("__")]  # type: ignore[attr-defined]
        assert barnabas == kafka, (user, bindings)
