from pathlib import Path

from barnabas.config.broker_config import BrokerConfig
from barnabas.policy import ConfigResourceType
from barnabas.server.policies import policy_settings


def test_a_broker_has_no_policies_by_default() -> None:
    settings = policy_settings(BrokerConfig({}))
    assert (settings.create_topic_class, settings.alter_config_class, settings.file) == ("", "", None)
    assert settings.time_limit_ms == 1000


def test_policies_come_from_the_configuration_and_receive_all_of_it() -> None:
    given = {
        "create.topic.policy.class.name": "rules:Naming",
        "alter.config.policy.class.name": "rules:Retention",
        "barnabas.policy.file": "policies.yaml",
        "barnabas.policy.timeout.ms": "5",
        "acme.prefix": "team.",
    }
    settings = policy_settings(BrokerConfig(given))
    assert settings.create_topic_class == "rules:Naming"
    assert settings.alter_config_class == "rules:Retention"
    assert settings.file == Path("policies.yaml")
    assert settings.time_limit_ms == 5
    assert given.items() <= settings.configs.items()


def test_rules_may_name_every_key_of_their_kind() -> None:
    known = policy_settings(BrokerConfig({})).known_keys
    for kind, key in (
        (ConfigResourceType.TOPIC, "retention.ms"),
        (ConfigResourceType.BROKER, "num.partitions"),
        (ConfigResourceType.GROUP, "consumer.session.timeout.ms"),
        (ConfigResourceType.CLIENT_METRICS, "interval.ms"),
    ):
        assert key in known[kind]
