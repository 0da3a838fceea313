"""Results of DescribeConfigs: each key with its value, source and synonyms."""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig, LayeredConfig, find_broker_key
from barnabas.config.config_source import ConfigSource
from barnabas.config.definition import ConfigKey, ConfigType, UpdateMode
from barnabas.config.keys.broker import BROKER_KEYS, broker_synonyms
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.topics import effective_value
from barnabas.config.values import format_value


class DescribedSynonym(NamedTuple):
    """A synonym with a value. `value` is None if it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """One key of a resource. `value` is None if there is none or it is sensitive."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[DescribedSynonym, ...]
    config_type: ConfigType
    documentation: str | None


class Layer(NamedTuple):
    """The values of one source, as text."""

    source: ConfigSource
    values: Mapping[str, str]


def describe_topic(
    broker: LayeredConfig, overrides: Mapping[str, str], names: Container[str] | None = None
) -> list[DescribedConfig]:
    """Return the keys of a topic by name; those in `names`, or all if it is None.

    A topic's own value comes first among the synonyms, then those of the broker key with the default.
    """
    layers = broker_layers(broker)

    def described(key: ConfigKey) -> DescribedConfig:
        value = format_value(effective_value(broker.current, overrides, key.name))
        return _topic_entry(key, value, key.name in overrides, layers)

    return [
        described(key)
        for name, key in TOPIC_KEYS.items()
        if (names is None or name in names) and (key.listed or name in overrides)
    ]


def _topic_entry(key: ConfigKey, value: str | None, overridden: bool, layers: list[Layer]) -> DescribedConfig:
    synonyms = broker_key_synonyms(key.synonyms[0].name, layers) if key.synonyms else ()
    if overridden:
        synonyms = (DescribedSynonym(key.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms)
    return DescribedConfig(
        name=key.name,
        value=value,
        read_only=False,
        source=first_source(synonyms),
        is_sensitive=False,
        synonyms=synonyms,
        config_type=key.type,
        documentation=key.description,
    )


def describe_broker(broker: LayeredConfig, names: Container[str] | None = None) -> list[DescribedConfig]:
    """Return the keys of a broker by name; those in `names`, or all if it is None.

    Internal and unknown keys are included if they are set; unknown keys count as sensitive.
    """
    layers = broker_layers(broker)
    listed = {name for name, key in BROKER_KEYS.items() if key.listed}
    return [
        _broker_entry(name, _displayed_value(broker.current, name), broker_key_synonyms(name, layers))
        for name in _wanted(listed | set(broker.current.originals), names)
    ]


def describe_broker_default(
    dynamic_default: Mapping[str, str], names: Container[str] | None = None
) -> list[DescribedConfig]:
    """Return the dynamic defaults of all brokers: the broker resource with an empty name."""
    layers = [Layer(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dynamic_default)]
    return [
        _broker_entry(name, dynamic_default[name], broker_key_synonyms(name, layers))
        for name in _wanted(dynamic_default, names)
    ]


def _wanted(candidates: Iterable[str], names: Container[str] | None) -> list[str]:
    return sorted(name for name in candidates if names is None or name in names)


def _displayed_value(broker: BrokerConfig, name: str) -> str | None:
    """Return the parsed value of a known key; of others, and of keys with a listener prefix, the value as set."""
    return format_value(broker.value(name)) if name in BROKER_KEYS else broker.originals[name]


def _broker_entry(name: str, value: str | None, synonyms: tuple[DescribedSynonym, ...]) -> DescribedConfig:
    key = find_broker_key(name)
    sensitive = is_sensitive(name)
    dynamic = key is not None and key.name == name and key.mode is not UpdateMode.READ_ONLY
    return DescribedConfig(
        name=name,
        value=None if sensitive else value,
        read_only=not dynamic,
        source=first_source(synonyms),
        is_sensitive=sensitive,
        synonyms=synonyms,
        config_type=key.type if key else ConfigType.UNKNOWN,
        documentation=key.description if key else None,
    )


def is_sensitive(name: str) -> bool:
    """Whether a broker key's value is hidden; unknown keys are hidden, too."""
    key = find_broker_key(name)
    return key is None or key.sensitive


def broker_layers(broker: LayeredConfig) -> list[Layer]:
    """Return the values of a broker by source, the highest precedence first."""
    return [
        Layer(ConfigSource.DYNAMIC_BROKER_CONFIG, broker.of_broker),
        Layer(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, broker.of_every_broker),
        Layer(ConfigSource.STATIC_BROKER_CONFIG, broker.static.originals),
    ]


def broker_key_synonyms(name: str, layers: list[Layer]) -> tuple[DescribedSynonym, ...]:
    """Return every source of a value of `name`, the highest precedence first.

    Like Kafka, leaves out synonyms before the name itself, and so all of them if the name is not set.
    """
    names = broker_synonyms(name, with_listeners=True)
    sensitive = is_sensitive(name)
    every = [
        DescribedSynonym(synonym, None if sensitive else layer.values[synonym], layer.source)
        for layer in layers
        for synonym in names
        if synonym in layer.values
    ]
    if layers[-1].source is ConfigSource.STATIC_BROKER_CONFIG:
        every += _default_synonyms(names, sensitive)
    start = next((index for index, synonym in enumerate(every) if synonym.name == name), len(every))
    return tuple(every[start:])


def _default_synonyms(names: Iterable[str], sensitive: bool) -> list[DescribedSynonym]:
    defaults = [(name, format_value(BROKER_KEYS[name].default)) for name in names if name in BROKER_KEYS]
    return [
        DescribedSynonym(name, None if sensitive else text, ConfigSource.DEFAULT_CONFIG)
        for name, text in defaults
        if text is not None
    ]


def first_source(synonyms: tuple[DescribedSynonym, ...]) -> ConfigSource:
    """Return the source of the first synonym."""
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
