"""Results of DescribeConfigs for groups (KIP-848), client metrics subscriptions (KIP-714) and loggers (KIP-412)."""

from collections.abc import Container, Mapping

from barnabas.config.broker_config import LayeredConfig
from barnabas.config.client_metrics import effective_client_metrics_values
from barnabas.config.config_source import ConfigSource
from barnabas.config.definition import ConfigKey, ConfigType, Value
from barnabas.config.describe import (
    DescribedConfig,
    DescribedSynonym,
    Layer,
    broker_key_synonyms,
    broker_layers,
    first_source,
)
from barnabas.config.groups import effective_group_values
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.values import format_value


def describe_group(
    broker: LayeredConfig, overrides: Mapping[str, str], names: Container[str] | None = None
) -> list[DescribedConfig]:
    """Return the keys of a group by name; those in `names`, or all if it is None."""
    layers = broker_layers(broker)
    values = effective_group_values(broker.current, overrides)
    names_to_describe = [name for name in sorted(values) if GROUP_KEYS[name].listed or name in overrides]
    return [
        _entry(
            GROUP_KEYS[name], values[name], _group_synonyms(GROUP_KEYS[name], values[name], overrides, layers)
        )
        for name in names_to_describe
        if names is None or name in names
    ]


def _group_synonyms(
    key: ConfigKey, value: Value, overrides: Mapping[str, str], layers: list[Layer]
) -> tuple[DescribedSynonym, ...]:
    if key.synonyms:
        synonyms = broker_key_synonyms(key.synonyms[0].name, layers)
    else:
        synonyms = (DescribedSynonym(key.name, format_value(key.default), ConfigSource.DEFAULT_CONFIG),)
    if key.name in overrides:
        return (DescribedSynonym(key.name, format_value(value), ConfigSource.GROUP_CONFIG), *synonyms)
    return synonyms


def describe_client_metrics(
    overrides: Mapping[str, str], names: Container[str] | None = None
) -> list[DescribedConfig]:
    """Return the keys of a subscription by name; those in `names`, or all if it is None."""
    values = effective_client_metrics_values(overrides)
    return [
        _entry(CLIENT_METRICS_KEYS[name], values[name], _own_synonym(name, values[name], overrides))
        for name in sorted(values)
        if names is None or name in names
    ]


def _own_synonym(name: str, value: Value, overrides: Mapping[str, str]) -> tuple[DescribedSynonym, ...]:
    if name not in overrides:
        return ()
    return (DescribedSynonym(name, format_value(value), ConfigSource.CLIENT_METRICS_CONFIG),)


def _entry(key: ConfigKey, value: Value, synonyms: tuple[DescribedSynonym, ...]) -> DescribedConfig:
    return DescribedConfig(
        name=key.name,
        value=format_value(value),
        read_only=False,
        source=first_source(synonyms),
        is_sensitive=False,
        synonyms=synonyms,
        config_type=key.type,
        documentation=key.description,
    )


def describe_loggers(levels: Mapping[str, str], names: Container[str] | None = None) -> list[DescribedConfig]:
    """Return the effective level of each logger by name; those in `names`, or all if it is None."""
    return [
        DescribedConfig(
            name=name,
            value=level,
            read_only=False,
            source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            is_sensitive=False,
            synonyms=(),
            config_type=ConfigType.UNKNOWN,
            documentation=None,
        )
        for name, level in sorted(levels.items())
        if names is None or name in names
    ]
