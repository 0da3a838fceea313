"""Reads the settings of policies and other user classes from the broker's configuration."""

from pathlib import Path

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.class_names import is_python_class
from barnabas.config.keys.broker import BROKER_KEYS, LISTENER_PREFIX, listener_base
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import BROKER_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.policy import ConfigResourceType
from barnabas.policy.policies import (
    ALTER_CONFIG_KEY,
    AUTHORIZER_KEY,
    CREATE_TOPIC_KEY,
    FILE_KEY,
    PRINCIPAL_BUILDER_KEY,
    PolicySettings,
)

KNOWN_KEYS = {
    ConfigResourceType.TOPIC: tuple(TOPIC_KEYS),
    ConfigResourceType.BROKER: (*BROKER_KEYS, *BROKER_QUOTA_KEYS),
    ConfigResourceType.GROUP: tuple(GROUP_KEYS),
    ConfigResourceType.CLIENT_METRICS: tuple(CLIENT_METRICS_KEYS),
}


def policy_settings(config: BrokerConfig) -> PolicySettings:
    """Return the configured user classes, the rules, and the broker settings that the classes receive."""
    file = config.text(FILE_KEY)
    return PolicySettings(
        create_topic_class=config.part(CREATE_TOPIC_KEY),
        alter_config_class=config.part(ALTER_CONFIG_KEY),
        authorizer_class=_python_class(config, AUTHORIZER_KEY),
        principal_builder_class=_python_class(config, PRINCIPAL_BUILDER_KEY),
        listener_principal_builders={
            key.removeprefix(LISTENER_PREFIX).partition(".")[0].upper(): _python_class(config, key)
            for key in config.originals
            if listener_base(key) == PRINCIPAL_BUILDER_KEY
        },
        file=Path(file) if file else None,
        known_keys=KNOWN_KEYS,
        time_limit_ms=config.integer("barnabas.policy.timeout.ms"),
        configs=config.originals,
    )


def _python_class(config: BrokerConfig, key: str) -> str:
    """Return the user's class; empty if the key selects a part of the broker."""
    part = config.part(key)
    return part if is_python_class(part) else ""
