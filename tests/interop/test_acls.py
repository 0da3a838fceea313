"""kafka-acls: permissions added, listed and removed, and their effect on a Kafka client."""

from collections.abc import Iterator

import pytest
from interop.brokers import Broker
from interop.reference import tool
from interop.targets import RUNNING

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def authorizing(target: str) -> Iterator[Broker]:
    with RUNNING[target](SETTINGS) as running:
        yield running


def acls(broker: Broker, *arguments: str) -> str:
    return tool("kafka-acls", "--bootstrap-server", broker.bootstrap, *arguments).stdout


def test_acls_are_added_listed_and_removed(authorizing: Broker) -> None:
    about = ("--topic", "orders-", "--resource-pattern-type", "prefixed")
    added = acls(
        authorizing, "--add", "--allow-principal", "User:alice", "--consumer", "--group", "g", *about
    )
    assert "resourceType=TOPIC, name=orders-, patternType=PREFIXED" in added
    listed = acls(authorizing, "--list", "--topic", "orders-2026", "--resource-pattern-type", "match")
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    assert "(principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW)" in listed
    acls(
        authorizing,
        "--add",
        "--deny-principal",
        "User:bob",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "Write",
        "--topic",
        "x",
    )
    assert "host=10.0.0.1, operation=WRITE, permissionType=DENY" in acls(authorizing, "--list")
    acls(authorizing, "--remove", "--force", *about)
    left = acls(authorizing, "--list")
    assert "orders-" not in left
    assert "resourceType=TOPIC, name=x" in left
