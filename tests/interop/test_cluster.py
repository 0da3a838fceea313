"""Every client's calls on configs, ACLs, quotas, credentials, leaders and replicas, as a superuser."""

from collections.abc import Iterator
from typing import Any

import pytest
from interop.brokers import Broker
from interop.clients import Client, ClientError, Clients, kinds_that
from interop.targets import RUNNING
from interop.topics import eventually, make_topic

#: Kafka's own authorizer, with every client as a superuser.
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker(target: str) -> Iterator[Broker]:
    """Run a broker with an authorizer."""
    with RUNNING[target](SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def every_client(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    running = Clients(broker.bootstrap, tmp_path_factory.mktemp("clients"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def helper(every_client: Clients) -> Client:
    return every_client["confluent-kafka"]


def refused(client: Client, error: str, operation: str, **arguments: Any) -> None:
    with pytest.raises(ClientError) as caught:
        client.do(operation, **arguments)
    assert caught.value.name == client.kind.errors[error]


@pytest.mark.parametrize("client", kinds_that("alter_topic_config"), indirect=True)
def test_a_topics_config_is_set_and_deleted(client: Client, topic: str) -> None:
    def shown() -> object:
        return client.do("topic_configs", topic=topic)["retention.ms"]

    client.do("alter_topic_config", topic=topic, key="retention.ms", value="1234567")
    eventually(lambda: shown() == "1234567")
    client.do("alter_topic_config", topic=topic, key="retention.ms", value=None)
    eventually(lambda: shown() == "604800000")


@pytest.mark.parametrize("client", kinds_that("alter_topic_config"), indirect=True)
def test_an_invalid_config_value_is_rejected(client: Client, topic: str) -> None:
    refused(client, "invalid config", "alter_topic_config", topic=topic, key="retention.ms", value="soon")


@pytest.mark.parametrize("client", kinds_that("replace_topic_configs"), indirect=True)
def test_a_topics_configs_are_replaced_by_clients_without_incremental_changes(
    client: Client, helper: Client, absent: str
) -> None:
    topic = make_topic(helper, absent, segment_bytes="2000000", retention_ms="1000000")
    client.do("replace_topic_configs", topic=topic, configs={"retention.ms": "2000000"})

    def shown() -> object:
        described = client.do("topic_configs", topic=topic)
        return described["retention.ms"], described["segment.bytes"]

    eventually(lambda: shown() == ("2000000", "1073741824"))


@pytest.mark.parametrize("client", kinds_that("create_acl"), indirect=True)
def test_acls_are_created_listed_and_deleted(client: Client, absent: str) -> None:
    assert client.do("acls", topic=absent) == []
    for principal in ("User:alice", "User:bob", "User:alice"):
        client.do("create_acl", topic=absent, principal=principal)
    eventually(lambda: sorted(client.do("acls", topic=absent)) == ["User:alice", "User:bob"])
    assert sorted(client.do("delete_acls", topic=absent)) == ["User:alice", "User:bob"]
    eventually(lambda: client.do("acls", topic=absent) == [])


@pytest.mark.parametrize("client", kinds_that("alter_quota"), indirect=True)
def test_quotas_are_set_described_and_removed(client: Client, absent: str) -> None:
    client.do("alter_quota", user=absent, key="producer_byte_rate", limit=1e6)
    client.do("alter_quota", user=absent, key="consumer_byte_rate", limit=2e6)
    limits = {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}
    eventually(lambda: client.do("quotas", user=absent) == limits)
    client.do("alter_quota", user=absent, key="producer_byte_rate", limit=None)
    eventually(lambda: client.do("quotas", user=absent) == {"consumer_byte_rate": 2e6})


@pytest.mark.parametrize("client", kinds_that("alter_scram"), indirect=True)
def test_scram_credentials_are_created_described_and_deleted(client: Client, absent: str) -> None:
    for iterations in (4096, 8192):
        client.do("alter_scram", user=absent, iterations=iterations)
    eventually(lambda: client.do("scram", user=absent) == {"SCRAM-SHA-256": 8192})
    client.do("delete_scram", user=absent)
    with pytest.raises(ClientError):
        client.do("delete_scram", user=absent)


@pytest.mark.parametrize("client", kinds_that("elect_leader"), indirect=True)
def test_a_preferred_leader_needs_no_election(client: Client, topic: str) -> None:
    refused(client, "election not needed", "elect_leader", topic=topic, partition=0)


@pytest.mark.parametrize("client", kinds_that("elect_leader"), indirect=True)
def test_an_unknown_topic_has_no_leader_to_elect(client: Client, absent: str) -> None:
    refused(client, "unknown topic", "elect_leader", topic=absent, partition=0)


@pytest.mark.parametrize("client", kinds_that("reassign"), indirect=True)
def test_a_reassignment_to_the_present_replicas_completes_immediately(
    client: Client, broker: Broker, topic: str
) -> None:
    client.do("reassign", topic=topic, partition=0, replicas=sorted(broker.nodes))
    eventually(lambda: client.do("reassignments", topic=topic) == [])


@pytest.mark.parametrize("client", kinds_that("reassign"), indirect=True)
def test_a_reassignment_to_an_unknown_broker_is_rejected(client: Client, topic: str) -> None:
    with pytest.raises(ClientError):
        client.do("reassign", topic=topic, partition=0, replicas=[77])
    assert client.do("reassignments", topic=topic) == []


@pytest.mark.parametrize("client", kinds_that("log_dirs"), indirect=True)
def test_log_directories_name_the_partitions_in_them(
    client: Client, helper: Client, broker: Broker, absent: str
) -> None:
    make_topic(helper, absent, partitions=3)
    eventually(lambda: sorted(client.do("log_dirs", topic=absent, broker=broker.node_id)) == [0, 1, 2])
