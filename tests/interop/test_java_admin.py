"""What only the Java Admin client asks: the cluster, its features and quorum, producers, log directories."""

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


def test_it_describes_the_cluster_and_what_may_be_done_to_it(java: Client, broker: Broker) -> None:
    described = java.do("cluster")
    assert described["controller"] == broker.node_id
    assert described["fenced"] == 0
    assert len(described["id"]) == 22
    every_operation = ["CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE"]
    assert described["operations"] == ["ALTER", "ALTER_CONFIGS", *every_operation]


def test_it_describes_the_features_and_is_refused_those_that_there_are_not(java: Client) -> None:
    assert java.do("features")["supported"]["metadata.version"] == [7, 30]
    for feature, level in (("no.such.version", 1), ("metadata.version", 999)):
        error = error_of(java, "try_feature", key=feature, count=level)
        assert error == "InvalidUpdateVersionException"


def test_it_describes_the_quorum(java: Client, broker: Broker) -> None:
    me = broker.node_id
    assert java.do("quorum") == {"leader": me, "voters": [me], "observers": 0}


def test_it_cannot_change_the_voters_of_a_quorum_that_is_fixed(java: Client, target: str) -> None:
    """Kafka first looks for the voter that is to be added, and finds nobody."""
    added = {"kafka": "TimeoutException", "barnabas": "UnsupportedVersionException"}
    assert error_of(java, "add_voter", broker=77) == added[target]
    assert error_of(java, "remove_voter", broker=77) == "VoterNotFoundException"


def test_it_cannot_unregister_a_broker_that_there_is_not(java: Client) -> None:
    assert error_of(java, "unregister_broker", broker=77) == "BrokerIdNotRegisteredException"


def test_it_lists_the_resources_that_have_configs(java: Client, broker: Broker, topic: str) -> None:
    resources = java.do("config_resources")
    assert topic in resources["TOPIC"]
    assert resources["BROKER"] == resources["BROKER_LOGGER"] == [str(broker.node_id)]


def test_it_describes_a_topic_by_its_id(java: Client, topic: str) -> None:
    assert java.do("topic_by_id", topic=topic) == topic


def test_it_sees_the_producers_of_a_partition_and_its_largest_timestamp(java: Client, topic: str) -> None:
    java.do("produce", topic=topic, partition=0, records=RECORDS, codec="none", idempotent=True)
    assert java.do("producers", topic=topic, partition=0) == [2]
    assert java.do("max_timestamp", topic=topic, partition=0) == [1, 30]


def test_it_sees_in_which_directory_a_replica_lies(
    java: Client, helper: Client, broker: Broker, absent: str
) -> None:
    make_topic(helper, absent)

    def directory() -> object:
        return java.do("replica_log_dir", topic=absent, partition=0, broker=broker.node_id)

    eventually(lambda: directory() == str(broker.data_dir))


def test_it_moves_a_replica_to_a_directory_that_the_broker_has_and_to_no_other(
    java: Client, broker: Broker, topic: str
) -> None:
    replica = {"topic": topic, "partition": 0, "broker": broker.node_id}
    java.do("move_replica", value=str(broker.data_dir), **replica)
    assert error_of(java, "move_replica", value="/no/such/directory", **replica) == "LogDirNotFoundException"
