from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.definition import ConfigType
from barnabas.config.describe import (
    ConfigSource,
    DescribedConfig,
    describe_broker,
    describe_broker_default,
    describe_topic,
)
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS

TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
DYNAMIC = ConfigSource.DYNAMIC_BROKER_CONFIG
DYNAMIC_DEFAULT = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG


def static(originals: dict[str, str]) -> LayeredConfig:
    return LayeredConfig.of(BrokerConfig(originals))


def by_name(entries: list[DescribedConfig]) -> dict[str, DescribedConfig]:
    names = [entry.name for entry in entries]
    assert names == sorted(set(names))
    return {entry.name: entry for entry in entries}


def test_a_topic_has_every_public_key_of_kafka_4_3() -> None:
    entries = by_name(describe_topic(static({}), {}))
    assert set(entries) == {name for name, key in TOPIC_KEYS.items() if key.listed}
    assert sum(not name.startswith("barnabas.") for name in entries) == 33
    assert not any(entry.read_only or entry.is_sensitive for entry in entries.values())


def test_internal_and_newer_topic_keys_are_shown_if_set() -> None:
    overrides = {"internal.segment.bytes": "5", "remote.copy.lag.ms": "6"}
    entries = by_name(describe_topic(static({}), overrides))
    assert {entries[name].value for name in overrides} == {"5", "6"}


def test_a_topics_own_value_precedes_the_brokers() -> None:
    broker = BrokerConfig({"message.max.bytes": "4"})
    (entry,) = describe_topic(
        LayeredConfig.of(broker, {"message.max.bytes": "2"}, {"message.max.bytes": "3"}),
        {"max.message.bytes": " 1 "},
        {"max.message.bytes"},
    )
    assert (entry.value, entry.source) == ("1", TOPIC)
    assert entry.synonyms == (
        ("max.message.bytes", "1", TOPIC),
        ("message.max.bytes", "2", DYNAMIC),
        ("message.max.bytes", "3", DYNAMIC_DEFAULT),
        ("message.max.bytes", "4", STATIC),
        ("message.max.bytes", "1048588", DEFAULT),
    )
    assert entry.config_type is ConfigType.INT
    assert entry.documentation == TOPIC_KEYS["max.message.bytes"].documentation


def test_a_topic_inherits_value_and_source_from_the_broker() -> None:
    entries = by_name(describe_topic(static({"log.segment.bytes": "2000000"}), {}))
    assert (entries["segment.bytes"].value, entries["segment.bytes"].source) == ("2000000", STATIC)
    assert entries["index.interval.bytes"].synonyms == (("log.index.interval.bytes", "4096", DEFAULT),)


def test_a_key_without_broker_synonym_has_none_unless_set() -> None:
    name = "remote.storage.enable"
    assert by_name(describe_topic(static({}), {}))[name].synonyms == ()
    overridden = by_name(describe_topic(static({}), {name: "FALSE"}))[name]
    assert (overridden.value, overridden.synonyms) == ("false", ((name, "false", TOPIC),))


def test_a_time_set_in_coarser_units_counts_as_default_as_in_kafka() -> None:
    entry = by_name(describe_topic(static({"log.retention.hours": "1"}), {}))["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", DEFAULT, ())


def test_a_time_set_in_the_finest_unit_is_followed_by_the_coarser() -> None:
    broker = BrokerConfig({"log.retention.ms": "7", "log.retention.minutes": "2"})
    entry = by_name(describe_topic(LayeredConfig.of(broker), {}))["retention.ms"]
    assert entry.synonyms == (
        ("log.retention.ms", "7", STATIC),
        ("log.retention.minutes", "2", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    )


def test_a_broker_has_every_public_key() -> None:
    entries = by_name(describe_broker(static({})))
    assert set(entries) == {name for name, key in BROKER_KEYS.items() if key.listed}
    assert entries["node.id"].source is STATIC
    assert entries["num.partitions"][:4] == ("num.partitions", "1", True, DEFAULT)
    assert entries["log.retention.ms"].value is None
    assert entries["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"


def test_only_dynamic_keys_are_writable() -> None:
    entries = by_name(describe_broker(static({})))
    assert not entries["message.max.bytes"].read_only
    assert not entries["ssl.keystore.location"].read_only
    assert entries["log.dirs"].read_only


def test_passwords_are_never_shown() -> None:
    entry = by_name(describe_broker(static({"ssl.key.password": "secret"})))["ssl.key.password"]
    assert (entry.value, entry.is_sensitive, entry.config_type) == (None, True, ConfigType.PASSWORD)
    assert entry.synonyms == (("ssl.key.password", None, STATIC),)


def test_unknown_keys_are_shown_without_value_or_type() -> None:
    entry = by_name(describe_broker(static({"my.own": "x"})))["my.own"]
    assert (entry.value, entry.is_sensitive, entry.read_only) == (None, True, True)
    assert (entry.config_type, entry.documentation) == (ConfigType.UNKNOWN, None)


def test_a_listeners_own_key_falls_back_to_the_common_one() -> None:
    name = "listener.name.tls.ssl.keystore.type"
    entry = by_name(describe_broker(static({name: "PEM"})))[name]
    assert (entry.value, entry.read_only, entry.config_type) == ("PEM", True, ConfigType.STRING)
    assert entry.synonyms == ((name, "PEM", STATIC), ("ssl.keystore.type", "JKS", DEFAULT))


def test_dynamic_values_of_a_broker_come_first() -> None:
    entries = by_name(
        describe_broker(
            LayeredConfig.of(
                BrokerConfig({"num.io.threads": "1"}),
                {"num.io.threads": "3", "leader.replication.throttled.rate": "9"},
                {"num.io.threads": "2"},
            )
        )
    )
    assert entries["num.io.threads"].synonyms == (
        ("num.io.threads", "3", DYNAMIC),
        ("num.io.threads", "2", DYNAMIC_DEFAULT),
        ("num.io.threads", "1", STATIC),
        ("num.io.threads", "8", DEFAULT),
    )
    rate = entries["leader.replication.throttled.rate"]
    assert (rate.value, rate.read_only, rate.synonyms) == ("9", False, ((rate.name, "9", DYNAMIC),))


def test_names_select_the_keys() -> None:
    chosen = {"num.partitions", "nope"}
    assert [entry.name for entry in describe_broker(static({}), names=chosen)] == ["num.partitions"]
    assert describe_topic(static({}), {}, names=()) == []


def test_the_cluster_default_has_only_its_dynamic_values() -> None:
    values = {"message.max.bytes": "5", "log.flush.interval.ms": "6"}
    entries = by_name(describe_broker_default(values))
    assert set(entries) == set(values)
    assert entries["message.max.bytes"].synonyms == (("message.max.bytes", "5", DYNAMIC_DEFAULT),)
    assert entries["log.flush.interval.ms"].source is DYNAMIC_DEFAULT
    assert describe_broker_default(values, names={"nope"}) == []
