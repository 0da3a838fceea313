"""Every key of a broker's own configuration, by name."""

from barnabas.config.barnabas_keys import BARNABAS_KEYS
from barnabas.config.coordinator_keys import COORDINATOR_KEYS
from barnabas.config.definition import table
from barnabas.config.log_keys import LOG_KEYS
from barnabas.config.network_keys import NETWORK_KEYS
from barnabas.config.node_keys import NODE_KEYS
from barnabas.config.remote_keys import REMOTE_KEYS
from barnabas.config.replication_keys import REPLICATION_KEYS
from barnabas.config.security_keys import SECURITY_KEYS
from barnabas.config.transaction_keys import TRANSACTION_KEYS

#: What server.properties may hold.
BROKER_KEYS = table(
    NODE_KEYS,
    NETWORK_KEYS,
    LOG_KEYS,
    REPLICATION_KEYS,
    COORDINATOR_KEYS,
    TRANSACTION_KEYS,
    REMOTE_KEYS,
    SECURITY_KEYS,
    BARNABAS_KEYS,
)

#: Broker keys of which the first that is set wins; the others count as it (`DynamicBrokerConfig`).
_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SYNONYMS = {name: group for group in (_ROLL, _ROLL_JITTER, _RETENTION) for name in group}
_SYNONYMS["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")

#: Keys that a listener's mechanism may override, as `listener.name.<listener>.<mechanism>.<key>`.
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
LISTENER_PREFIX = "listener.name."


def listener_base(name: str) -> str | None:
    """The key that `listener.name.<listener>.[<mechanism>.]<key>` overrides; None for other names."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    _, dot, base = name[len(LISTENER_PREFIX) :].partition(".")
    if not dot or not base:
        return None
    return next((key for key in _MECHANISM_KEYS if base.endswith(key)), base)


def broker_synonyms(name: str, *, with_listeners: bool) -> tuple[str, ...]:
    """The names under which the value of `name` may be set, the strongest first."""
    if name in _SYNONYMS:
        return _SYNONYMS[name]
    base = listener_base(name) if with_listeners else None
    return (name,) if base is None else (name, base)
