"""Requests that alter configs: resources of every kind, valid and invalid keys and values."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.config.definition import ConfigKey, ConfigType, UpdateMode
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import BROKER_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.values import format_value
from barnabas.wire.messages import alter_configs as whole
from barnabas.wire.messages import incremental_alter_configs as incremental
from barnabas.wire.schema import Message
from differential.symbols import Name

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

#: Every key, by the type of its config resource.
KEYS = {
    TOPIC: TOPIC_KEYS,
    BROKER: {**BROKER_KEYS, **BROKER_QUOTA_KEYS},
    CLIENT_METRICS: CLIENT_METRICS_KEYS,
    GROUP: GROUP_KEYS,
}
_INTEGERS = ("x", "-3", "-1", "0", "1", "70000", "2147483648", "9223372036854775808", "", " 5 ", "1.5")
_TRIED = {
    ConfigType.SHORT: _INTEGERS,
    ConfigType.INT: _INTEGERS,
    ConfigType.LONG: _INTEGERS,
    ConfigType.DOUBLE: ("x", "-1", "0", "0.5", "2", "NaN", ""),
    ConfigType.BOOLEAN: ("maybe", "TRUE", "", " true"),
    ConfigType.LIST: ("", "a", "a,a", "a,,b", "*", ","),
}
_TEXTS = ("", "x", "gzip", "SSL", "a:b")


def values_of(key: ConfigKey) -> Iterator[str]:
    """Return test values of a key: its default, valid, invalid and boundary values of its type."""
    default = format_value(key.default)
    tried = _TRIED.get(key.type, _TEXTS)
    if key.mode is UpdateMode.READ_ONLY:
        tried = tried[:1]  # read-only, whatever the value
    yield from tried
    if default is not None and default not in tried:
        yield default


#: Config changes in histories: (type, name, keys with their values). All worlds share the brokers, which validate only.
_RESOURCES: list[tuple[int, Any]] = [
    *[(TOPIC, Name(name)) for name in ("a", "a", "b", "stamped", "missing")],
    *[(GROUP, Name(name)) for name in ("g", "h")],
    *[(CLIENT_METRICS, Name("m"))],
    *[
        (BROKER, "1"),
        (BROKER, ""),
        (BROKER, "2"),
        (BROKER, "one"),
        (BROKER_LOGGER, "1"),
        (BROKER_LOGGER, "x"),
    ],
    *[(TOPIC, ""), (TOPIC, "no spaces"), (GROUP, ""), (CLIENT_METRICS, ""), (0, "x"), (3, "x"), (127, "x")],
]
_VALUES = {
    TOPIC: [
        ("retention.ms", "1000"), ("retention.ms", "-2"), ("retention.ms", "-1"), ("segment.ms", "7"),
        ("cleanup.policy", "compact"), ("cleanup.policy", "delete"), ("cleanup.policy", " compact"),
        ("cleanup.policy", ""), ("cleanup.policy", "shred"), ("min.compaction.lag.ms", "100"),
        ("max.compaction.lag.ms", "10"), ("max.message.bytes", "150"), ("no.such.key", "1"), ("", "1"),
        ("leader.replication.throttled.replicas", "0:1"), ("follower.replication.throttled.replicas", "0:1,1:1"),
    ],
    GROUP: [
        ("consumer.session.timeout.ms", "46000"), ("consumer.session.timeout.ms", "1"),
        ("consumer.heartbeat.interval.ms", "6000"), ("share.auto.offset.reset", "earliest"),
        ("share.isolation.level", "read_committed"), ("streams.num.standby.replicas", "1"), ("no.such.key", "1"),
    ],
    CLIENT_METRICS: [
        ("interval.ms", "100"), ("interval.ms", "99"), ("metrics", "a.b"), ("metrics", "*"), ("metrics", ""),
        ("match", "client_id=x.*"), ("match", "x"), ("no.such.key", "1"),
    ],
    BROKER: [
        ("log.retention.ms", "1000"), ("log.retention.ms", "x"), ("log.cleanup.policy", "compact"),
        ("node.id", "1"), ("num.io.threads", "9"), ("num.io.threads", "100"), ("my.own.key", "1"),
        ("ssl.keystore.location", "x"), ("sasl.enabled.mechanisms", "PLAIN"), ("max.connections", "0"),
        ("listener.name.plaintext.max.connections", "5"), ("listener.name.plaintext.ssl.client.auth", "none"),
    ],
    BROKER_LOGGER: [("root", "INFO"), ("root", "info"), ("no.such.logger", "INFO")],
}  # fmt: skip
_OTHERS = [("retention.ms", "1")]


def alterations(request: type[Message]) -> SearchStrategy[Message]:
    """Generate AlterConfigs or IncrementalAlterConfigs requests."""
    replaces = request is whole.AlterConfigsRequest
    resource = st.sampled_from(_RESOURCES).flatmap(lambda named: _resource(*named, replaces=replaces))
    resources = st.lists(resource, max_size=3)
    if replaces:  # Kafka's behaviour for a duplicate resource is a listed difference
        resources = resources.map(_once)
    built: SearchStrategy[Message] = st.builds(request, resources=resources, validate_only=st.booleans())
    return built.map(_harmless)


def _resource(kind: int, name: Any, *, replaces: bool) -> SearchStrategy[Any]:
    pairs = st.sampled_from(_VALUES.get(kind, _OTHERS))
    if replaces:
        configs = pairs.map(lambda pair: whole.AlterableConfig(*pair))
        some = st.lists(configs, max_size=3)
        return some.map(lambda given: whole.AlterConfigsResource(kind, name, given))
    operations = st.sampled_from([SET, SET, SET, DELETE, APPEND, SUBTRACT])
    edits = st.builds(lambda pair, operation: _edit(*pair, operation), pairs, operations)  # type: ignore[call-arg]
    some_edits = st.lists(edits, max_size=3)
    return some_edits.map(lambda given: incremental.AlterConfigsResource(kind, name, given))


def _edit(key: str, value: str, operation: int) -> incremental.AlterableConfig:
    return incremental.AlterableConfig(key, operation, None if operation == DELETE else value)


def _once(resources: list[Any]) -> list[Any]:
    named = {(each.resource_type, repr(each.resource_name)): each for each in resources}
    return list(named.values())


def _harmless(request: Any) -> Any:
    """Make changes of brokers and loggers validate-only, because all worlds share them."""
    if any(resource.resource_type in (BROKER, BROKER_LOGGER) for resource in request.resources):
        request.validate_only = True
    return request
