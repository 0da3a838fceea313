"""Metadata: auto-creation by config and flag, null against empty, ids and names."""

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.admin import describe, described
from support.wire import Wire

UNKNOWN_ID = bytes(range(16))
VERSIONS = range(14)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_existing_topic_is_described(kafka: EmbeddedBroker, wire: Wire, version: int) -> None:
    kafka.create_topic("t", partitions=3)
    response = describe(wire, "t", version=version)
    [broker] = response.brokers
    assert (broker.host, broker.port) == ("127.0.0.1", kafka.port)
    [topic] = response.topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("t", ErrorCode.NONE, False)
    assert sorted(partition.partition_index for partition in topic.partitions) == [0, 1, 2]
    for partition in topic.partitions:
        assert partition.leader_id == broker.node_id
        assert partition.replica_nodes == partition.isr_nodes == [broker.node_id]
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    assert (topic.topic_id != ZERO_UUID) == (version >= 10)
    assert response.controller_id == (broker.node_id if version >= 1 else -1)
    assert response.cluster_id == (kafka.server.broker.cluster_id if version >= 2 else None)


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_topic_is_created_when_config_and_flag_allow_it(
    enabled: str, flag: bool, version: int
) -> None:
    """Before v4 requests have no flag; it counts as set."""
    with (
        EmbeddedBroker({"auto.create.topics.enable": enabled, "num.partitions": "2"}) as kafka,
        Wire(kafka.port) as wire,
    ):
        [topic] = describe(wire, "new", version=version, auto_create=flag).topics
        made = enabled == "true" and (flag or version < 4)
        assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
        [topic] = describe(wire, "new", version=version, auto_create=flag).topics
        assert topic.error_code == (ErrorCode.NONE if made else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert len(topic.partitions) == (2 if made else 0)
        assert kafka.topics() == ({"new": 2} if made else {})


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "größe"])
@pytest.mark.parametrize("flag", [True, False])
def test_an_invalid_name_is_reported_and_not_created(
    kafka: EmbeddedBroker, wire: Wire, name: str, flag: bool
) -> None:
    good, bad = describe(wire, "good", name, auto_create=flag).topics
    assert (bad.name, bad.error_code) == (name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert good.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert kafka.topics() == ({"good": 1} if flag else {})


def test_a_colliding_name_is_not_created(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a.b")
    for _ in range(2):
        [topic] = describe(wire, "a_b", auto_create=True).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(kafka.topics()) == ["a.b"]


@pytest.mark.parametrize("version", VERSIONS)
def test_null_means_all_topics_and_empty_means_none(kafka: EmbeddedBroker, wire: Wire, version: int) -> None:
    """In v0, which has no null, empty means all."""
    for name in ("a", "b"):
        kafka.create_topic(name)
    empty = describe(wire, version=version)
    assert [topic.name for topic in empty.topics] == (["a", "b"] if version == 0 else [])
    assert len(empty.brokers) == 1
    if version >= 1:
        everything = describe(wire, version=version, everything=True)
        assert sorted(topic.name or "" for topic in everything.topics) == ["a", "b"]


def test_a_deleted_topic_is_not_recreated_by_clients_that_await_its_deletion(
    kafka: EmbeddedBroker, wire: Wire
) -> None:
    """Clients poll for a deletion like this, with the flag set."""
    kafka.create_topic("t")
    kafka.delete_topic("t")
    [topic] = describe(wire, "t", auto_create=True).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_response_with_all_topics_is_never_stale(kafka: EmbeddedBroker, wire: Wire) -> None:
    for number in range(5):
        kafka.create_topic(f"t{number}")
        assert len(describe(wire, everything=True).topics) == number + 1
    kafka.delete_topic("t0")
    assert len(describe(wire, everything=True).topics) == 4


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_described_by_id(kafka: EmbeddedBroker, wire: Wire, version: int) -> None:
    kafka.create_topic("t")
    topic_id = wire.topic_id("t")
    found, missing = describe(wire, topic_id, UNKNOWN_ID, version=version).topics
    assert (found.name, found.topic_id, found.error_code) == ("t", topic_id, ErrorCode.NONE)
    assert (missing.name, missing.topic_id) == (None, UNKNOWN_ID)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_id_creates_no_topic(kafka: EmbeddedBroker, wire: Wire) -> None:
    describe(wire, UNKNOWN_ID, auto_create=True)
    assert kafka.topics() == {}


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_version_12_are_rejected(kafka: EmbeddedBroker, wire: Wire, version: int) -> None:
    kafka.create_topic("t")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=UNKNOWN_ID)])
    assert wire.ask(request, version).topics[0].error_code == ErrorCode.INVALID_REQUEST


def test_authorized_operations_are_returned_on_request(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert wire.ask(request, 10).topics[0].topic_authorized_operations == -(2**31)
    request.include_topic_authorized_operations = request.include_cluster_authorized_operations = True
    response = wire.ask(request, 10)
    assert response.topics[0].topic_authorized_operations > 0
    assert response.cluster_authorized_operations > 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_described(kafka: EmbeddedBroker, wire: Wire, version: int) -> None:
    response = wire.ask(DescribeClusterRequest(endpoint_type=1), version)
    assert (response.error_code, response.cluster_id) == (ErrorCode.NONE, kafka.server.broker.cluster_id)
    [broker] = response.brokers
    assert (broker.broker_id, broker.port) == (kafka.server.broker.broker_id, kafka.port)
    if version >= 1:
        refused = wire.ask(DescribeClusterRequest(endpoint_type=2), version)
        assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_partitions_are_described_page_by_page(kafka: EmbeddedBroker, wire: Wire) -> None:
    for name in ("a", "b", "c"):
        kafka.create_topic(name, partitions=3)
    seen: list[tuple[str, int]] = []
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor)
        request.topics = [TopicRequest(name=name) for name in ("c", "b", "a")]
        response = wire.ask(request)
        seen += [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]
        if response.next_cursor is None:
            break
        cursor = Cursor(response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert seen == [(name, index) for name in ("a", "b", "c") for index in range(3)]


def test_a_described_topic_is_unknown_after_its_deletion(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    kafka.delete_topic("t")
    assert described(wire, "t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
