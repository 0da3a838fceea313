import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.keys.table import TABLE_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.topics import (
    TopicConfig,
    broker_default,
    effective_topic_config,
    effective_values,
    validate_topic_overrides,
)
from barnabas.wire.errors import ErrorCode, KafkaError

BROKER = BrokerConfig({})
TIERED = BrokerConfig({"remote.log.storage.system.enable": "true"})
HOUR_MS = 3_600_000


def refusal(overrides: dict[str, str | None], broker: BrokerConfig = BROKER) -> str:
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides(broker, overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_a_topic_config_has_a_field_for_every_key_but_those_of_tables() -> None:
    acting = TOPIC_KEYS.keys() - {key.name for key in TABLE_KEYS}
    assert sorted(TopicConfig._fields) == sorted(name.replace(".", "_") for name in acting)


def test_a_topic_without_overrides_has_kafkas_defaults() -> None:
    values = effective_values(BROKER, {})
    assert values == {name: key.default for name, key in TOPIC_KEYS.items()}


def test_overrides_precede_the_brokers_values() -> None:
    broker = BrokerConfig({"message.max.bytes": "5000", "log.segment.bytes": "2000000"})
    config = effective_topic_config(broker, {"max.message.bytes": "7", "cleanup.policy": "compact,delete"})
    assert config.max_message_bytes == 7
    assert config.segment_bytes == 2_000_000
    assert config.cleanup_policy == ("compact", "delete")


@pytest.mark.parametrize(
    ("originals", "name", "value"),
    [
        ({"log.retention.hours": "2"}, "retention.ms", 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", 180_000),
        ({"log.retention.hours": "2", "log.retention.ms": "5"}, "retention.ms", 5),
        ({"log.retention.minutes": "-9"}, "retention.ms", -1),
        ({"log.roll.hours": "3"}, "segment.ms", 3 * HOUR_MS),
        ({"log.roll.ms": "4", "log.roll.hours": "3"}, "segment.ms", 4),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", HOUR_MS),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", 9),
        ({"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "8"}, "flush.ms", 8),
        ({"compression.type": "zstd"}, "compression.type", "zstd"),
    ],
)
def test_the_first_synonym_with_a_value_is_the_default(
    originals: dict[str, str], name: str, value: int | str
) -> None:
    assert broker_default(BrokerConfig(originals), name) == value


def test_dynamic_broker_values_apply_to_the_topic() -> None:
    broker = BrokerConfig({"log.retention.hours": "1"}).with_dynamic(
        {"message.max.bytes": "30"}, {"message.max.bytes": "20", "log.retention.ms": "40"}
    )
    config = effective_topic_config(broker, {})
    assert (config.max_message_bytes, config.retention_ms) == (30, 40)


def test_an_invalid_stored_override_is_rejected() -> None:
    with pytest.raises(ConfigError):
        effective_topic_config(BROKER, {"retention.ms": "soon"})


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"retention.ms": " 100000 ", "segment.ms": "+70"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,compact"},
        {"preallocate": "TRUE"},
        {"leader.replication.throttled.replicas": "*"},
        {"compression.gzip.level": "-1"},
        {"min.cleanable.dirty.ratio": "NaN"},
        {"internal.segment.bytes": "1"},
        {"max.decompressed.message.bytes": "5"},
        {"local.retention.ms": "-1"},
    ],
)
def test_valid_overrides_pass(overrides: dict[str, str | None]) -> None:
    validate_topic_overrides(BROKER, overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"segment.bytes": "5"}, "Invalid value '5' for segment.bytes: must be at least 1048576"),
        ({"retention.ms": None}, "Invalid value null for retention.ms: a topic config requires a value"),
        ({"cleanup.policy": "compact,foo"}, "'foo' is not valid; must be a list of compact, delete"),
        ({"compression.type": "GZIP"}, "must be one of uncompressed, zstd"),
        ({"flush.ms": "9223372036854775808"}, "must be a whole number of 64 bits"),
        ({"leader.replication.throttled.replicas": "a:1"}, "must be * or a list of {partition}:{broker}"),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "Invalid value '5' for min.compaction.lag.ms: must be at most max.compaction.lag.ms, which is 4",
        ),
        ({"remote.storage.enable": "true"}, "remote.log.storage.system.enable is false"),
    ],
)
def test_invalid_overrides_are_rejected(overrides: dict[str, str | None], message: str) -> None:
    assert message in refusal(overrides)


def test_a_value_longer_than_a_record_can_store_is_rejected() -> None:
    longest = ",".join(["0:1"] * 8192)
    validate_topic_overrides(BROKER, {"leader.replication.throttled.replicas": longest})
    message = refusal({"leader.replication.throttled.replicas": longest + ",1:1"})
    assert "it has 32771 characters, at most 32767 are valid" in message
    assert len(message) < 200


def test_an_override_is_validated_against_the_brokers_values() -> None:
    broker = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "10"})
    validate_topic_overrides(broker, {"min.compaction.lag.ms": "10"})
    assert "which is 10" in refusal({"min.compaction.lag.ms": "11"}, broker)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"retention.ms": "100", "local.retention.ms": "100"},
        {"retention.bytes": "-1", "local.retention.bytes": "-1"},
        {"remote.log.copy.disable": "true"},
        {"remote.log.copy.disable": "true", "retention.ms": "5", "local.retention.ms": "5"},
    ],
)
def test_a_tiered_topic_may_keep_up_to_its_retention_on_local_disk(overrides: dict[str, str | None]) -> None:
    validate_topic_overrides(TIERED, {"remote.storage.enable": "true", **overrides})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"cleanup.policy": "compact"}, "must be delete or empty"),
        ({"retention.ms": "100", "local.retention.ms": "101"}, "from 0 to 100, the value of retention.ms"),
        (
            {"retention.bytes": "100", "local.retention.bytes": "-1"},
            "from 0 to 100, the value of retention.bytes",
        ),
        (
            {"remote.log.copy.disable": "true", "retention.ms": "5", "local.retention.ms": "4"},
            "must be 5, the value of retention.ms, or -2 when remote.log.copy.disable is true",
        ),
    ],
)
def test_an_inconsistent_tiered_topic_is_rejected(overrides: dict[str, str | None], message: str) -> None:
    assert message in refusal({"remote.storage.enable": "true", **overrides}, TIERED)


def test_remote_storage_can_be_disabled_only_by_deleting_its_data() -> None:
    existing = {"remote.storage.enable": "true"}
    with pytest.raises(KafkaError, match=r"remote\.log\.delete\.on\.disable=true"):
        validate_topic_overrides(TIERED, {}, existing)
    validate_topic_overrides(TIERED, {"remote.log.delete.on.disable": "true"}, existing)
    validate_topic_overrides(TIERED, {}, {"retention.ms": "5"})
