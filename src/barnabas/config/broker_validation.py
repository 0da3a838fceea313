"""Constraints between broker keys, as Apache Kafka checks them at the start."""

from collections.abc import Callable

from barnabas.config.authorization import super_users
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.topics import broker_default

_ONE_MIB = 1024 * 1024
_EVERY_DIRECTORY = "*"


def check_broker_config(config: BrokerConfig) -> None:
    """Check the configuration.

    Keys that only a KRaft quorum needs are not required.

    :raises ConfigError: For the first contradiction, with the key, its value and what is valid.
    """
    for rule in _RULES:
        rule(config)


def _fail(config: BrokerConfig, key: str, reason: str) -> None:
    value = config.value(key)
    raise ConfigError(key, value, reason)


def _node_id(config: BrokerConfig) -> None:
    if config.integer("broker.id") != config.node_id:
        _fail(config, "broker.id", f"must be the node.id, {config.node_id}")


def _times_of_logs(config: BrokerConfig) -> None:
    for topic_key, broker_key, low in (
        ("segment.ms", "log.roll.ms", 1),
        ("segment.jitter.ms", "log.roll.jitter.ms", 0),
    ):
        value = broker_default(config, topic_key)
        assert isinstance(value, int)
        if value < low:
            raise ConfigError(broker_key, value, f"must be at least {low}")
    if broker_default(config, "retention.ms") == 0:
        raise ConfigError("log.retention.ms", 0, "must be at least 1, or -1 for no limit")


def _compaction_lags(config: BrokerConfig) -> None:
    longest = config.integer("log.cleaner.max.compaction.lag.ms")
    if config.integer("log.cleaner.min.compaction.lag.ms") > longest:
        reason = f"must be at most log.cleaner.max.compaction.lag.ms, which is {longest}"
        _fail(config, "log.cleaner.min.compaction.lag.ms", reason)


def _cleaner_buffer(config: BrokerConfig) -> None:
    threads = config.integer("log.cleaner.threads")
    if threads and config.integer("log.cleaner.dedupe.buffer.size") // threads <= _ONE_MIB:
        reason = f"must be more than {threads * _ONE_MIB}, 1 MiB for each of log.cleaner.threads"
        _fail(config, "log.cleaner.dedupe.buffer.size", reason)


def _follower_waits(config: BrokerConfig) -> None:
    wait_ms = config.integer("replica.fetch.wait.max.ms")
    for key in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if wait_ms > config.integer(key):
            _fail(config, key, f"must be at least replica.fetch.wait.max.ms, which is {wait_ms}")


def _inter_broker_listener(config: BrokerConfig) -> None:
    both = config.is_set("inter.broker.listener.name") and config.is_set("security.inter.broker.protocol")
    if both:
        _fail(
            config,
            "inter.broker.listener.name",
            "must not be set together with security.inter.broker.protocol",
        )
    names = [listener.name for listener in config.listeners if listener.advertised]
    if not names:
        _fail(config, "listeners", "must contain a listener that is not in controller.listener.names")
    if config.inter_broker_listener_name not in names:
        named = config.text_or_none("inter.broker.listener.name") is not None
        key = "inter.broker.listener.name" if named else "security.inter.broker.protocol"
        reason = f"must name an advertised listener, here one of {', '.join(names)}"
        if not named:
            reason += "; or set inter.broker.listener.name"
        _fail(config, key, reason)


def _inter_broker_mechanism(config: BrokerConfig) -> None:
    name = config.inter_broker_listener_name
    if config.security_protocols()[name].name.startswith("SASL"):
        mechanisms = config.for_listener(name).items("sasl.enabled.mechanisms")
        if config.text("sasl.mechanism.inter.broker.protocol") not in mechanisms:
            reason = f"must be among sasl.enabled.mechanisms, here {', '.join(mechanisms)}"
            _fail(config, "sasl.mechanism.inter.broker.protocol", reason)


def _early_listeners(config: BrokerConfig) -> None:
    known = {listener.name for listener in (*config.listeners, *config.controller_listeners)}
    known.update(name.upper() for name in config.items("controller.listener.names"))
    for name in config.items_or_none("early.start.listeners") or ():
        if name.upper() not in known:
            _fail(config, "early.start.listeners", f"must name listeners, here {', '.join(sorted(known))}")


def _cordoned_directories(config: BrokerConfig) -> None:
    cordoned = config.items_or_none("cordoned.log.dirs") or ()
    if _EVERY_DIRECTORY in cordoned:
        if len(cordoned) > 1:
            _fail(config, "cordoned.log.dirs", "must be * alone, or a list of log directories")
    elif not set(cordoned) <= set(config.log_dirs):
        _fail(config, "cordoned.log.dirs", f"must be among the log directories, {', '.join(config.log_dirs)}")


def _request_memory(config: BrokerConfig) -> None:
    largest = config.integer("socket.request.max.bytes")
    if 0 < config.integer("queued.max.request.bytes") < largest:
        reason = f"must be at least socket.request.max.bytes, which is {largest}, or -1 for no limit"
        _fail(config, "queued.max.request.bytes", reason)


def _connections_per_address(config: BrokerConfig) -> None:
    overrides = parse_connection_overrides(config)
    if config.integer("max.connections.per.ip") == 0 and not overrides:
        _fail(config, "max.connections.per.ip", "may be 0 only when max.connections.per.ip.overrides is set")


def parse_connection_overrides(config: BrokerConfig) -> dict[str, int]:
    """Return the limits of max.connections.per.ip.overrides by host.

    :raises ConfigError: When an entry is not `host:count`.
    """
    key = "max.connections.per.ip.overrides"
    overrides = {}
    for entry in filter(None, (entry.strip() for entry in config.text(key).split(","))):
        host, _, count = entry.rpartition(":")
        if not host.strip() or not count.strip().isdecimal():
            _fail(config, key, f"'{entry}' must be host:count")
        overrides[host.strip()] = int(count)
    return overrides


def _authentication_delay(config: BrokerConfig) -> None:
    idle_ms = config.integer("connections.max.idle.ms")
    if 0 <= idle_ms <= config.integer("connection.failed.authentication.delay.ms"):
        reason = f"must be less than connections.max.idle.ms, which is {idle_ms}"
        _fail(config, "connection.failed.authentication.delay.ms", reason)


def _classic_groups(config: BrokerConfig) -> None:
    if "classic" not in config.items("group.coordinator.rebalance.protocols"):
        _fail(config, "group.coordinator.rebalance.protocols", "must contain classic")


def _assignment_intervals(config: BrokerConfig) -> None:
    for kind in ("consumer", "share", "streams"):
        key = f"group.{kind}.assignment.interval.ms"
        low = config.integer(f"group.{kind}.min.assignment.interval.ms")
        high = config.integer(f"group.{kind}.max.assignment.interval.ms")
        if not low <= config.integer(key) <= high:
            reason = f"must be from {low} to {high}, the bounds of group.{kind}.min.assignment.interval.ms and .max."
            _fail(config, key, reason)


def _web_listeners(config: BrokerConfig) -> None:
    for key in ("barnabas.metrics.listener", "barnabas.registry.listener"):
        text = config.text(key)
        host, _, port = text.rpartition(":")
        if text and not (host and port.isdecimal() and int(port) <= 65535):
            _fail(config, key, "must be HOST:PORT, or empty for none")


def _super_users(config: BrokerConfig) -> None:
    super_users(config)


_RULES: tuple[Callable[[BrokerConfig], None], ...] = (
    _node_id,
    _times_of_logs,
    _compaction_lags,
    _cleaner_buffer,
    _follower_waits,
    _inter_broker_listener,
    _inter_broker_mechanism,
    _early_listeners,
    _cordoned_directories,
    _request_memory,
    _connections_per_address,
    _authentication_delay,
    _classic_groups,
    _assignment_intervals,
    _web_listeners,
    _super_users,
)
