"""Topic configs: overrides of the broker's values, and constraints between them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError, Value
from barnabas.config.keys.table import TABLE_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.values import parse_value
from barnabas.wire.errors import ErrorCode, KafkaError

#: KIP-497: values are stored in records with 16-bit string lengths.
VALUE_CHARACTERS_MAX = 32767
#: The value -2 of local.retention.*: the same as retention.*.
_AS_RETENTION = -2
#: How many configurations have their topic defaults kept: the present one of each broker of this process.
_CONFIGURATIONS_COUNT = 8


class TopicConfig(NamedTuple):
    """Every topic key that a broker acts on, with its effective value, named as the key with underscores.

    Names contain the units. The keys of tables are left out.
    """

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    errors_deadletterqueue_group_enable: bool
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    internal_segment_bytes: int | None
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_decompressed_message_bytes: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_copy_lag_bytes: int
    remote_copy_lag_ms: int
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool


_KEYS_BY_FIELD = {name.replace(".", "_"): name for name in TOPIC_KEYS}
#: The keys of the fields, in their order.
_OF_THE_BROKER = tuple(_KEYS_BY_FIELD[field] for field in TopicConfig._fields)
assert set(_OF_THE_BROKER) == TOPIC_KEYS.keys() - {key.name for key in TABLE_KEYS}


def effective_topic_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """Return the effective values of a topic with `overrides` on a broker.

    :raises ConfigError: When a stored override is invalid, which validation prevents.
    """
    return TopicConfig._make(effective_value(broker, overrides, name) for name in _OF_THE_BROKER)


def effective_values(broker: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return the parsed value of every topic key, by name.

    :raises ConfigError: When an override is invalid.
    """
    return {name: effective_value(broker, overrides, name) for name in TOPIC_KEYS}


def effective_value(broker: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """Return the parsed value of a topic key.

    :raises ConfigError: When an override is invalid.
    """
    if name in overrides:
        return parse_value(TOPIC_KEYS[name], overrides[name])
    return _broker_defaults(broker)[name]


@lru_cache(maxsize=_CONFIGURATIONS_COUNT)
def _broker_defaults(broker: BrokerConfig) -> Mapping[str, Value]:
    """Return every topic key's value without an override."""
    return {name: broker_default(broker, name) for name in TOPIC_KEYS}


def broker_default(broker: BrokerConfig, name: str) -> Value:
    """Return a topic key's value without an override.

    The first synonym with a value wins; times are converted to milliseconds, negative values of retention.ms to -1.
    """
    key = TOPIC_KEYS[name]
    for synonym in key.synonyms:
        value = broker.value(synonym.name)
        if value is not None:
            if synonym.factor != 1:
                assert isinstance(value, int), (synonym, value)
                value *= synonym.factor
            return max(value, -1) if name == "retention.ms" and isinstance(value, int) else value
    return key.default


def validate_topic_overrides(
    broker_config: BrokerConfig,
    overrides: Mapping[str, str | None],
    existing: Mapping[str, str] | None = None,
) -> None:
    """Check the configs of a topic.

    :param existing: The topic's configs before the change; empty for a new topic.
    :raises KafkaError: INVALID_CONFIG, naming the key, the value and what is valid.
    """
    try:
        values = effective_values(broker_config, _checked_texts(overrides))
        _check_compaction_lags(values)
        if values["remote.storage.enable"]:
            _check_remote_storage(broker_config, values)
        elif existing and existing.get("remote.storage.enable", "").strip().lower() == "true":
            _check_turning_off(values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _checked_texts(overrides: Mapping[str, str | None]) -> dict[str, str]:
    unknown = [name for name in overrides if name not in TOPIC_KEYS]
    if unknown:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {unknown[0]}")
    texts = {}
    for name, text in overrides.items():
        if text is None:
            raise ConfigError(name, text, "a topic config requires a value")
        if len(text) > VALUE_CHARACTERS_MAX:
            reason = f"it has {len(text)} characters, at most {VALUE_CHARACTERS_MAX} are valid"
            raise ConfigError(name, f"{text[:20]}...", reason)
        texts[name] = text
    return texts


def _integer(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), (name, value)
    return value


def _check_compaction_lags(values: Mapping[str, Value]) -> None:
    shortest = _integer(values, "min.compaction.lag.ms")
    longest = _integer(values, "max.compaction.lag.ms")
    if shortest > longest:
        reason = f"must be at most max.compaction.lag.ms, which is {longest}"
        raise ConfigError("min.compaction.lag.ms", shortest, reason)


def _check_remote_storage(broker: BrokerConfig, values: Mapping[str, Value]) -> None:
    if not broker.boolean("remote.log.storage.system.enable"):
        reason = "the broker has no remote storage: remote.log.storage.system.enable is false"
        raise ConfigError("remote.storage.enable", "true", reason)
    policy = values["cleanup.policy"]
    if policy not in ((), ("delete",)):
        reason = "must be delete or empty when remote.storage.enable is true"
        raise ConfigError("cleanup.policy", policy, reason)
    for unit in ("bytes", "ms"):
        _check_local_retention(values, unit)


def _check_local_retention(values: Mapping[str, Value], unit: str) -> None:
    local = _integer(values, f"local.retention.{unit}")
    whole = _integer(values, f"retention.{unit}")
    if local == _AS_RETENTION:
        return
    if whole >= 0 and (local == -1 or local > whole):
        reason = f"must be from 0 to {whole}, the value of retention.{unit}, or -2 to follow it"
        raise ConfigError(f"local.retention.{unit}", local, reason)
    if values["remote.log.copy.disable"] and local != whole:
        reason = f"must be {whole}, the value of retention.{unit}, or -2 when remote.log.copy.disable is true"
        raise ConfigError(f"local.retention.{unit}", local, reason)


def _check_turning_off(values: Mapping[str, Value]) -> None:
    if not values["remote.log.delete.on.disable"]:
        reason = (
            "remote storage cannot be turned off while its data stay: set remote.log.delete.on.disable=true "
            "to delete them, or remote.storage.enable=true and remote.log.copy.disable=true to read them"
        )
        raise ConfigError("remote.storage.enable", "false", reason)
