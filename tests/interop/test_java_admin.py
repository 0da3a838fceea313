"""Requests that only the Java Admin client sends: cluster, features, quorum, producers, log directories."""

import pytest
from interop.brokers import Broker
from interop.clients import Client, ClientError, Clients
from interop.topics import eventually, make_topic

RECORDS = [
    {"key": None, "value": value, "timestamp": timestamp}
    for value, timestamp in (("a", 10), ("b", 30), ("c", 20))
]


@pytest.fixture
def java(every_client: Clients) -> Client:
    return every_client["java"]


def error_of(java: Client, operation: str, **arguments: object) -> str:
    with pytest.raises(ClientError) as caught:
        java.do(operation, **arguments)
    return caught.value.name


def test_the_cluster_is_described_with_authorized_operations(java: Client, broker: Broker) -> None:
    described = java.do("cluster")
    assert described["controller"] in broker.nodes
    assert described["fenced"] == 0
    assert len(described["id"]) == 22
    every_operation = ["CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE"]
    assert described["operations"] == ["ALTER", "ALTER_CONFIGS", *every_operation]


def test_features_are_described_and_unknown_ones_rejected(java: Client) -> None:
    assert java.do("features")["supported"]["metadata.version"] == [7, 30]
    for feature, level in (("no.such.version", 1), ("metadata.version", 999)):
        error = error_of(java, "try_feature", key=feature, count=level)
        assert error == "InvalidUpdateVersionException"


def test_the_quorum_is_described(java: Client, broker: Broker) -> None:
    described = java.do("quorum")
    assert described["leader"] in described["voters"]
    assert set(described["voters"]) <= broker.nodes.keys()
    assert described["observers"] == 0


def test_voters_of_a_static_quorum_cannot_be_changed(java: Client, target: str) -> None:
    """Kafka first connects to the new voter, and fails."""
    added = {"kafka": "TimeoutException", "barnabas": "UnsupportedVersionException"}
    assert error_of(java, "add_voter", broker=77) == added[target]
    assert error_of(java, "remove_voter", broker=77) == "VoterNotFoundException"


def test_an_unknown_broker_cannot_be_unregistered(java: Client) -> None:
    assert error_of(java, "unregister_broker", broker=77) == "BrokerIdNotRegisteredException"


def test_resources_with_configs_are_listed(java: Client, broker: Broker, topic: str) -> None:
    resources = java.do("config_resources")
    assert topic in resources["TOPIC"]
    assert sorted(resources["BROKER"]) == sorted(map(str, broker.nodes))
    assert resources["BROKER_LOGGER"] == resources["BROKER"]


def test_a_topic_is_described_by_its_id(java: Client, topic: str) -> None:
    assert java.do("topic_by_id", topic=topic) == topic


def test_the_producers_of_a_partition_and_its_maximum_timestamp_are_returned(
    java: Client, topic: str
) -> None:
    java.do("produce", topic=topic, partition=0, records=RECORDS, codec="none", idempotent=True)
    assert java.do("producers", topic=topic, partition=0) == [2]
    assert java.do("max_timestamp", topic=topic, partition=0) == [1, 30]


def test_a_replicas_log_directory_is_returned(
    java: Client, helper: Client, broker: Broker, absent: str
) -> None:
    make_topic(helper, absent)

    def directory() -> object:
        return java.do("replica_log_dir", topic=absent, partition=0, broker=broker.node_id)

    eventually(lambda: directory() == str(broker.data_dir))


def test_a_replica_moves_only_to_an_existing_directory(java: Client, broker: Broker, topic: str) -> None:
    replica = {"topic": topic, "partition": 0, "broker": broker.node_id}
    java.do("move_replica", value=str(broker.data_dir), **replica)
    assert error_of(java, "move_replica", value="/no/such/directory", **replica) == "LogDirNotFoundException"
