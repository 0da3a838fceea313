"""Validates client metrics subscriptions (KIP-714)."""

from collections.abc import Mapping

from barnabas.config.definition import ConfigError, Value
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.values import parse_type, parse_value
from barnabas.wire.errors import ErrorCode, KafkaError


def effective_client_metrics_values(overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return the parsed value of every key of a subscription, by name.

    :raises ConfigError: When a stored value is invalid, which validation prevents.
    """
    return {
        name: parse_value(key, overrides[name]) if name in overrides else key.default
        for name, key in CLIENT_METRICS_KEYS.items()
    }


def validate_client_metrics(overrides: Mapping[str, str]) -> None:
    """Check a subscription.

    :raises KafkaError: INVALID_REQUEST for an unknown key or an interval out of bounds, INVALID_CONFIG for an
        invalid value.
    """
    for name, text in overrides.items():
        key = CLIENT_METRICS_KEYS.get(name)
        if key is None:
            message = f"Unknown client metrics config name: {name}; it must be one of {', '.join(CLIENT_METRICS_KEYS)}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        code = ErrorCode.INVALID_CONFIG
        try:
            parse_type(name, key.type, text)
            if name == "interval.ms":
                code = ErrorCode.INVALID_REQUEST
            parse_value(key, text)
        except ConfigError as error:
            raise KafkaError(code, str(error)) from None
