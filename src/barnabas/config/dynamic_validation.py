"""Which broker values may be changed at runtime, as in Apache Kafka's `DynamicBrokerConfig` (KIP-226)."""

from collections.abc import Mapping, Sequence

from barnabas.config.broker_config import BrokerConfig, find_broker_key
from barnabas.config.broker_validation import check_broker_config
from barnabas.config.definition import ConfigError, ConfigKey, UpdateMode
from barnabas.config.keys.broker import listener_base
from barnabas.config.listener_validation import check_listener_change
from barnabas.config.values import parse_value

#: Keys that must have a listener prefix.
_LISTENERS_OWN = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
_ONLY_WITH_LISTENER = (
    "These security configs can be dynamically updated only per-listener using the listener prefix"
)
#: Beginnings of keys that decide which logins and certificates are accepted: read-only with a listener prefix, too,
#: other than in Kafka.
_NEVER_DYNAMIC = ("sasl.oauthbearer.", "barnabas.sasl.", "ssl.allow.", "ssl.principal.mapping.rules")

#: Keys that Kafka can change at runtime, but Barnabas reads only at the start.
READ_AT_START = frozenset({"principal.builder.class"})

#: Keys that may be set for a listener on all brokers at once.
_LISTENERS_EVERYWHERE = ("max.connections", "max.connection.creation.rate", "num.network.threads")

#: Connection limits, which may be 0 in the file only.
_AT_LEAST_1 = ("max.connections", "max.connection.creation.rate", "log.cleaner.threads")

#: Thread counts, which Kafka lets halve or double at most in one change.
_THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


class NotChangeable(ConfigError):
    """Keys that may not be set here; the message has no values, which may be secrets."""

    def __init__(self, reason: str, names: Sequence[str]) -> None:
        super().__init__(names[0], None, reason)
        self.args = (f"{reason}: [{', '.join(names)}]",)  # Apache Kafka's wording


def check_dynamic_values(values: Mapping[str, str], *, every_broker: bool) -> None:
    """Check each dynamic value of a broker, or of all brokers.

    Unknown keys are accepted for plug-ins, and kept as secrets.

    :raises NotChangeable: When keys may not be changed at runtime, or not for all brokers.
    :raises ConfigError: When a value is invalid.
    """
    keys = {name: key for name in values if (key := find_broker_key(name)) is not None}
    plain = {name: key for name, key in keys.items() if listener_base(name) is None}
    read_only = [
        name
        for name, key in keys.items()
        if key.name in READ_AT_START
        or (key.mode is UpdateMode.READ_ONLY and (name in plain or key.name.startswith(_NEVER_DYNAMIC)))
    ]
    _refuse(read_only, "Cannot update these configs dynamically")
    without_listener = [name for name, key in plain.items() if key.name in _LISTENERS_OWN]
    _refuse(without_listener, _ONLY_WITH_LISTENER)
    for name, key in keys.items():
        parse_value(key._replace(name=name), values[name])
    if every_broker:
        per_broker = [name for name in values if _is_per_broker(name, keys.get(name))]
        _refuse(
            per_broker, "Cannot update these configs at default cluster level, broker id must be specified"
        )


def _refuse(names: Sequence[str], reason: str) -> None:
    if names:
        raise NotChangeable(reason, names)


def _is_per_broker(name: str, key: ConfigKey | None) -> bool:
    base = listener_base(name)
    if base is not None:
        return base not in _LISTENERS_EVERYWHERE
    return key is not None and key.mode is UpdateMode.PER_BROKER


def check_dynamic_change(before: BrokerConfig, after: BrokerConfig) -> None:
    """Check the change from one whole configuration to another at runtime.

    :raises ConfigError: When values contradict one another, or one changes too much at once.
    """
    check_broker_config(after)
    check_listener_change(before, after)
    for key in _AT_LEAST_1:
        if after.integer(key) < 1:
            raise ConfigError(key, after.integer(key), "must be at least 1")
    for key in _THREAD_COUNTS:
        _check_threads(key, before.integer(key), after.integer(key))


def _check_threads(key: str, now: int, requested: int) -> None:
    if requested != now and not now // 2 <= requested <= now * 2:
        reason = f"must be from {now // 2} to {now * 2}: at most half or double the present {now} at a time"
        raise ConfigError(key, requested, reason)
