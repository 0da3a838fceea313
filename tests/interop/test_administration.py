"""Every client's administrative calls, and its errors when the broker rejects one."""

from typing import Any

import pytest
from interop.brokers import Broker
from interop.clients import KINDS, Client, ClientError, kinds_that
from interop.topics import eventually, make_topic


def refused(client: Client, error: str, operation: str, **arguments: Any) -> str:
    """Check that the client's users get ``error``; return its message."""
    with pytest.raises(ClientError) as caught:
        client.do(operation, **arguments)
    assert caught.value.name == client.kind.errors[error]
    return caught.value.message


@pytest.mark.parametrize("client", kinds_that("metadata"), indirect=True)
def test_connects_and_sees_the_brokers_and_their_topics(client: Client, broker: Broker, topic: str) -> None:
    found = client.do("metadata")
    assert sorted(found["brokers"]) == sorted(broker.nodes.values())
    assert found["topics"][topic] == [0]


@pytest.mark.parametrize("client", kinds_that("metadata"), indirect=True)
def test_sees_the_partitions_of_one_topic(client: Client, helper: Client, absent: str) -> None:
    topic = make_topic(helper, absent, partitions=12)
    assert client.do("metadata", topic=topic)["topics"] == {topic: list(range(12))}


@pytest.mark.parametrize("client", kinds_that("create_topic"), indirect=True)
def test_creates_a_topic_with_partitions_and_configs(client: Client, absent: str) -> None:
    configs = {"retention.ms": "3600000", "cleanup.policy": "compact"}
    client.do("create_topic", topic=absent, partitions=3, configs=configs)
    eventually(lambda: client.do("metadata")["topics"].get(absent) == [0, 1, 2])
    described = client.do("topic_configs", topic=absent)
    assert {key: described[key] for key in configs} == configs
    assert described["segment.bytes"] == "1073741824"


@pytest.mark.parametrize("client", kinds_that("broker_configs"), indirect=True)
def test_describes_the_configs_of_the_broker(client: Client, broker: Broker) -> None:
    described = client.do("broker_configs", broker=broker.node_id)
    assert described["message.max.bytes"] == "1048588"
    assert described["num.partitions"] == "1"
    assert described["log.retention.hours"] == "168"


@pytest.mark.parametrize("client", kinds_that("create_partitions"), indirect=True)
def test_creates_partitions(client: Client, topic: str, helper: Client) -> None:
    client.do("create_partitions", topic=topic, count=4)
    eventually(lambda: helper.do("metadata")["topics"][topic] == [0, 1, 2, 3])


@pytest.mark.parametrize("client", kinds_that("delete_records"), indirect=True)
def test_deletes_records_before_an_offset(client: Client, topic: str, helper: Client) -> None:
    records = [{"key": None, "value": str(number)} for number in range(10)]
    helper.do("produce", topic=topic, partition=0, records=records, codec="none", idempotent=False)
    assert client.do("delete_records", topic=topic, partition=0, before=4) == 4
    assert helper.do("offsets", topic=topic, partition=0) == {"earliest": 4, "latest": 10}
    read = helper.do("consume", topic=topic, partition=0, count=6)
    assert [record["value"] for record in read] == ["4", "5", "6", "7", "8", "9"]


@pytest.mark.parametrize("client", kinds_that("delete_topic"), indirect=True)
def test_deletes_a_topic(client: Client, topic: str) -> None:
    client.do("delete_topic", topic=topic)
    eventually(lambda: topic not in client.do("metadata")["topics"])


@pytest.mark.parametrize("client", kinds_that("create_topic"), indirect=True)
def test_a_topic_that_exists_is_not_created_again(client: Client, topic: str) -> None:
    message = refused(client, "topic exists", "create_topic", topic=topic, partitions=1, configs={})
    if client.kind.has_the_brokers_message:
        assert topic in message


@pytest.mark.parametrize("client", kinds_that("create_topic"), indirect=True)
@pytest.mark.parametrize("name", ["not a name", "a/b", "..", "a" * 250])
def test_an_invalid_topic_name_is_rejected(client: Client, name: str) -> None:
    refused(client, "invalid topic", "create_topic", topic=name, partitions=1, configs={})


@pytest.mark.parametrize("client", kinds_that("create_topic"), indirect=True)
def test_a_topic_without_partitions_is_rejected(client: Client, absent: str) -> None:
    refused(client, "invalid partitions", "create_topic", topic=absent, partitions=0, configs={})


@pytest.mark.parametrize("client", kinds_that("create_topic"), indirect=True)
@pytest.mark.parametrize("configs", [{"retention.ms": "soon"}, {"no.such.config": "1"}])
def test_an_invalid_config_is_rejected_by_its_name(
    client: Client, absent: str, configs: dict[str, str]
) -> None:
    message = refused(client, "invalid config", "create_topic", topic=absent, partitions=1, configs=configs)
    if client.kind.has_the_brokers_message:
        assert next(iter(configs)) in message


@pytest.mark.parametrize("client", kinds_that("create_partitions"), indirect=True)
@pytest.mark.parametrize("count", [1, 2])
def test_partitions_are_never_removed(client: Client, helper: Client, absent: str, count: int) -> None:
    topic = make_topic(helper, absent, partitions=2)
    refused(client, "invalid partitions", "create_partitions", topic=topic, count=count)


@pytest.mark.parametrize("client", kinds_that("create_partitions"), indirect=True)
def test_an_unknown_topic_gets_no_partitions(client: Client, absent: str) -> None:
    refused(client, "unknown topic", "create_partitions", topic=absent, count=2)


@pytest.mark.parametrize("client", kinds_that("delete_topic"), indirect=True)
def test_an_unknown_topic_cannot_be_deleted(client: Client, absent: str) -> None:
    refused(client, "unknown topic", "delete_topic", topic=absent)


@pytest.mark.parametrize("client", kinds_that("delete_records"), indirect=True)
def test_records_beyond_the_end_cannot_be_deleted(client: Client, topic: str) -> None:
    refused(client, "offset out of range", "delete_records", topic=topic, partition=0, before=1)


@pytest.mark.parametrize(
    "client", [kind.name for kind in KINDS.values() if not kind.creates_topics_by_describing], indirect=True
)
def test_an_unknown_topic_is_reported(client: Client, absent: str) -> None:
    refused(client, "unknown topic", "metadata", topic=absent)


@pytest.mark.parametrize(
    "client", [kind.name for kind in KINDS.values() if kind.creates_topics_by_describing], indirect=True
)
def test_a_client_that_requests_it_creates_the_topic_it_describes(client: Client, absent: str) -> None:
    def described() -> object:
        try:
            return client.do("metadata", topic=absent)["topics"]
        except ClientError as error:
            return error.name

    # a broker may once return that the topic is unknown while it creates it
    assert described() in ({absent: [0]}, client.kind.errors["unknown topic"])
    eventually(lambda: described() == {absent: [0]})
