import pytest

from barnabas.base.topic_names import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.topics import validate_topic_overrides
from barnabas.metadata.internal_topics import BROKER_TOPICS, internal_topic


def test_the_topic_of_offsets_is_compacted_and_keeps_the_codec_of_its_batches() -> None:
    topic = internal_topic(GROUP_TOPIC, BrokerConfig({}), 3)
    assert (topic.partition_count, topic.replication_factor) == (50, 3)
    assert topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_the_topic_of_transactions_is_compacted_without_unclean_elections() -> None:
    topic = internal_topic(TRANSACTION_TOPIC, BrokerConfig({}), 3)
    assert (topic.partition_count, topic.replication_factor) == (50, 3)
    assert topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize(
    ("name", "prefix"), [(GROUP_TOPIC, "offsets.topic"), (TRANSACTION_TOPIC, "transaction.state.log")]
)
def test_the_configuration_determines_the_internal_topics(name: str, prefix: str) -> None:
    settings = {"num.partitions": "7", "segment.bytes": "12345", "replication.factor": "2"}
    config = BrokerConfig({f"{prefix}.{key}": value for key, value in settings.items()})
    topic = internal_topic(name, config, 1)
    assert (topic.partition_count, topic.replication_factor) == (7, 2)
    assert (topic.configs or {})["segment.bytes"] == "12345"


def test_min_insync_replicas_of_the_transactions_topic_is_configurable() -> None:
    topic = internal_topic(TRANSACTION_TOPIC, BrokerConfig({"transaction.state.log.min.isr": "1"}), 1)
    assert (topic.configs or {})["min.insync.replicas"] == "1"


@pytest.mark.parametrize(("broker_count", "factor"), [(0, 1), (1, 1), (2, 2), (5, 3)])
def test_the_default_replication_factor_is_limited_by_the_brokers(broker_count: int, factor: int) -> None:
    for name in BROKER_TOPICS:
        assert internal_topic(name, BrokerConfig({}), broker_count).replication_factor == factor


def test_the_topics_are_internal_and_valid() -> None:
    assert BROKER_TOPICS < INTERNAL_TOPICS
    config = BrokerConfig({})
    for name in BROKER_TOPICS:
        validate_topic_overrides(config, internal_topic(name, config, 1).configs or {})
