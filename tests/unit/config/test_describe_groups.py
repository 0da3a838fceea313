from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.config_source import ConfigSource
from barnabas.config.definition import ConfigType
from barnabas.config.describe import DescribedConfig
from barnabas.config.describe_groups import describe_client_metrics, describe_group, describe_loggers
from barnabas.config.keys.group import GROUP_KEYS

GROUP = ConfigSource.GROUP_CONFIG
KEY = "consumer.session.timeout.ms"


def group(overrides: dict[str, str], *names: str) -> list[DescribedConfig]:
    static = BrokerConfig({f"group.{KEY}": "50000"})
    interval = {"group.consumer.assignment.interval.ms": "7"}
    return describe_group(LayeredConfig.of(static, {}, interval), overrides, names or None)


def test_a_group_has_every_public_key_of_kafka_4_3() -> None:
    assert [entry.name for entry in group({})] == [
        name for name in sorted(GROUP_KEYS) if GROUP_KEYS[name].listed
    ]


def test_a_groups_own_value_precedes_the_brokers() -> None:
    [entry] = group({KEY: " 46000"}, KEY)
    assert (entry.value, entry.source, entry.config_type) == ("46000", GROUP, ConfigType.INT)
    assert entry.synonyms == (
        (KEY, "46000", GROUP),
        (f"group.{KEY}", "50000", ConfigSource.STATIC_BROKER_CONFIG),
        (f"group.{KEY}", "45000", ConfigSource.DEFAULT_CONFIG),
    )


def test_a_group_inherits_the_brokers_values() -> None:
    [interval, session] = group({}, KEY, "consumer.assignment.interval.ms")
    assert (session.value, session.source) == ("50000", ConfigSource.STATIC_BROKER_CONFIG)
    assert (interval.value, interval.source) == ("7", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)


def test_a_key_without_a_broker_key_has_its_own_default() -> None:
    [entry] = group({}, "share.auto.offset.reset")
    assert entry.synonyms == (("share.auto.offset.reset", "latest", ConfigSource.DEFAULT_CONFIG),)


def test_a_subscription_has_its_values_and_the_defaults() -> None:
    interval, match, metrics = describe_client_metrics({"metrics": "a.b,c"})
    assert (interval.value, interval.source, interval.synonyms) == (
        "300000",
        ConfigSource.DEFAULT_CONFIG,
        (),
    )
    assert match.value == ""
    assert (metrics.value, metrics.source) == ("a.b,c", ConfigSource.CLIENT_METRICS_CONFIG)
    assert [entry.name for entry in describe_client_metrics({}, {"match"})] == ["match"]


def test_loggers_have_their_effective_level() -> None:
    [entry] = describe_loggers({"root": "INFO", "barnabas.log": "DEBUG"}, {"barnabas.log"})
    assert (entry.name, entry.value, entry.read_only) == ("barnabas.log", "DEBUG", False)
    assert entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
