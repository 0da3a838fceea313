import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.metadata import Metadata
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def answered(*topics: MetadataResponseTopic) -> MetadataResponse:
    broker = MetadataResponseBroker(node_id=5, host="h", port=1)
    return MetadataResponse(brokers=[broker], cluster_id="c", controller_id=5, topics=list(topics))


def topic(name: str, *leaders: int, indexes: range | None = None) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(partition_index=index, leader_id=leader)
        for index, leader in zip(indexes or range(len(leaders)), leaders, strict=True)
    ]
    return MetadataResponseTopic(name=name, topic_id=name.encode().ljust(16), partitions=partitions[::-1])


def test_a_response_has_brokers_controller_and_topics_with_ordered_partitions() -> None:
    metadata = Metadata().updated(answered(topic("t", 5, -1)), complete=False)
    assert metadata.node(5).address == BrokerAddress("h", 1)
    assert (metadata.cluster_id, metadata.controller_id) == ("c", 5)
    assert [each.partition_index for each in metadata.topic("t").partitions] == [0, 1]
    assert metadata.leader(TopicPartition("t", 0)) == 5
    assert metadata.topic_name(b"t".ljust(16)) == "t"
    assert metadata.topic_name(bytes(16)) is None


def test_topics_that_were_not_requested_stay_unless_all_were_requested() -> None:
    first = Metadata().updated(answered(topic("a", 5)), complete=False)
    assert first.updated(answered(topic("b", 5)), complete=False).topics.keys() == {"a", "b"}
    assert first.updated(answered(topic("b", 5)), complete=True).topics.keys() == {"b"}


def test_missing_leaders_invalid_partitions_and_unknown_topics_are_distinct_errors() -> None:
    metadata = Metadata().updated(answered(topic("t", 5, -1)), complete=False)
    for tp, code in (
        (TopicPartition("t", 1), ErrorCode.LEADER_NOT_AVAILABLE),
        (TopicPartition("t", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("t", -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("u", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        with pytest.raises(KafkaError) as raised:
            metadata.leader(tp)
        assert raised.value.code is code


def test_a_leader_that_is_no_broker_of_the_cluster_is_not_available() -> None:
    metadata = Metadata().updated(answered(topic("t", 6)), complete=False)
    with pytest.raises(
        KafkaError, match="LEADER_NOT_AVAILABLE: broker 6, the last known leader of partition t-0"
    ):
        metadata.leader(TopicPartition("t", 0))


def test_a_partition_is_found_by_index_even_if_one_is_missing() -> None:
    metadata = Metadata().updated(answered(topic("t", -1, 5, indexes=range(1, 3))), complete=False)
    assert metadata.leader(TopicPartition("t", 2)) == 5
    with pytest.raises(KafkaError, match="none with index 0"):
        metadata.leader(TopicPartition("t", 0))


def test_an_error_belongs_to_its_topic() -> None:
    missing = MetadataResponseTopic(name="t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError, match="topic 't' does not exist"):
        Metadata().updated(answered(missing), complete=False).topic("t")


def test_a_top_level_error_is_raised() -> None:
    with pytest.raises(KafkaError, match="REBOOTSTRAP_REQUIRED"):
        Metadata().updated(MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED), complete=False)


def test_an_unknown_broker_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(KafkaError, match="no broker with node id 9; the cluster has: 5"):
        Metadata().updated(answered(), complete=False).node(9)
