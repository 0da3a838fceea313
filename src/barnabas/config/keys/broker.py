"""All keys of a broker's own configuration, by name."""

from barnabas.config.definition import table
from barnabas.config.keys.barnabas import BARNABAS_KEYS
from barnabas.config.keys.coordinator import COORDINATOR_KEYS
from barnabas.config.keys.log import LOG_KEYS
from barnabas.config.keys.network import NETWORK_KEYS
from barnabas.config.keys.node import NODE_KEYS
from barnabas.config.keys.remote import REMOTE_KEYS
from barnabas.config.keys.replication import REPLICATION_KEYS
from barnabas.config.keys.security import SECURITY_KEYS
from barnabas.config.keys.transaction import TRANSACTION_KEYS

#: The keys of server.properties.
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

#: Broker keys of which the first that is set wins; the others count as synonyms (`DynamicBrokerConfig`).
_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SYNONYMS = {name: group for group in (_ROLL, _ROLL_JITTER, _RETENTION) for name in group}
_SYNONYMS["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")

#: Keys that can be overridden for a listener's mechanism, as `listener.name.<listener>.<mechanism>.<key>`.
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
#: All keys of this mechanism may have its prefix.
_OAUTHBEARER_PREFIX = "oauthbearer."
LISTENER_PREFIX = "listener.name."


def listener_base(name: str) -> str | None:
    """The key that `listener.name.<listener>.[<mechanism>.]<key>` overrides; None for other names."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    _, dot, base = name[len(LISTENER_PREFIX) :].partition(".")
    if not dot or not base:
        return None
    return next(
        (key for key in _MECHANISM_KEYS if base.endswith(key)), base.removeprefix(_OAUTHBEARER_PREFIX)
    )


def broker_synonyms(name: str, *, with_listeners: bool) -> tuple[str, ...]:
    """The names that provide the value of `name`, the highest precedence first."""
    if name in _SYNONYMS:
        return _SYNONYMS[name]
    base = listener_base(name) if with_listeners else None
    return (name,) if base is None else (name, base)
