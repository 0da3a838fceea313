"""Group configs: overrides of the broker's values, and the bounds that brokers set (KIP-848, KIP-932)."""

from collections.abc import Mapping

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError, Value
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.values import parse_value
from barnabas.wire.errors import ErrorCode, KafkaError


def effective_group_values(broker: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return the parsed value of every group key, by name.

    :raises ConfigError: When an override is invalid.
    """
    return {name: group_value(broker, overrides, name) for name in GROUP_KEYS}


def group_value(broker: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """Return the parsed value of one group key.

    :raises ConfigError: When the override is invalid.
    """
    if name in overrides:
        return parse_value(GROUP_KEYS[name], overrides[name])
    return group_default(broker, name)


def group_default(broker: BrokerConfig, name: str) -> Value:
    """Return a group key's value without an override."""
    key = GROUP_KEYS[name]
    return broker.value(key.synonyms[0].name) if key.synonyms else key.default


def validate_group_overrides(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Check the configs of a group.

    :raises KafkaError: INVALID_CONFIG, naming the key, the value and what is valid.
    """
    unknown = [name for name in overrides if name not in GROUP_KEYS]
    if unknown:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {unknown[0]}")
    try:
        values = effective_group_values(broker, overrides)
        for name in overrides:
            _check_bounds(broker, name, values[name])
        for kind in ("consumer", "share", "streams"):
            _check_session(values, kind)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_bounds(broker: BrokerConfig, name: str, value: Value) -> None:
    """Check that a group's value is between the broker keys `group.<kind>.min.<rest>` and `group.<kind>.max.<rest>`."""
    kind, _, rest = name.partition(".")
    low_key = f"group.{kind}.min.{rest}"
    high_key = f"group.{kind}.max.{rest.removeprefix('num.')}"
    if not isinstance(value, int):
        return
    if low_key in BROKER_KEYS and value < broker.integer(low_key):
        raise ConfigError(name, value, f"must be at least {broker.integer(low_key)}, the broker's {low_key}")
    if high_key in BROKER_KEYS and value > broker.integer(high_key):
        raise ConfigError(name, value, f"must be at most {broker.integer(high_key)}, the broker's {high_key}")


def _check_session(values: Mapping[str, Value], kind: str) -> None:
    session_ms = values[f"{kind}.session.timeout.ms"]
    heartbeat_ms = values[f"{kind}.heartbeat.interval.ms"]
    assert isinstance(session_ms, int)
    assert isinstance(heartbeat_ms, int)
    if session_ms <= heartbeat_ms:
        reason = f"must be more than {kind}.heartbeat.interval.ms, which is {heartbeat_ms}"
        raise ConfigError(f"{kind}.session.timeout.ms", session_ms, reason)
