import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.broker_validation import check_broker_config, parse_connection_overrides
from barnabas.config.definition import ConfigError

TLS = {
    "listeners": "TLS://h:1",
    "listener.security.protocol.map": "TLS:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "TLS",
}


@pytest.mark.parametrize(
    "originals",
    [
        {},
        {"log.retention.ms": "-1"},
        {"log.retention.hours": "-7"},
        {"log.roll.ms": "1", "log.roll.jitter.ms": "0"},
        {"log.cleaner.threads": "0"},
        {"inter.broker.listener.name": "plaintext"},
        {"listeners": "SSL://h:1", "security.inter.broker.protocol": "SSL"},
        {**TLS, "sasl.mechanism.inter.broker.protocol": "PLAIN", "sasl.enabled.mechanisms": "PLAIN"},
        {
            **TLS,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.tls.sasl.enabled.mechanisms": "PLAIN",
        },
        {"early.start.listeners": "CONTROLLER,plaintext"},
        {"log.dirs": "/a,/b", "cordoned.log.dirs": "/b"},
        {"cordoned.log.dirs": "*"},
        {"queued.max.request.bytes": "104857600"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "localhost:5"},
        {"connections.max.idle.ms": "-1"},
        {"barnabas.metrics.listener": "[::1]:0"},
    ],
)
def test_consistent_keys_pass(originals: dict[str, str]) -> None:
    check_broker_config(BrokerConfig(originals))


@pytest.mark.parametrize(
    ("originals", "key", "valid"),
    [
        ({"node.id": "1", "broker.id": "2"}, "broker.id", "the node.id, 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms", "at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms", "at least 0"),
        ({"log.retention.minutes": "0"}, "log.retention.ms", "at least 1, or -1"),
        (
            {"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"},
            "log.cleaner.min.compaction.lag.ms",
            "which is 4",
        ),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size", "1 MiB for each"),
        ({"replica.socket.timeout.ms": "499"}, "replica.socket.timeout.ms", "which is 500"),
        ({"replica.lag.time.max.ms": "499"}, "replica.lag.time.max.ms", "which is 500"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "inter.broker.listener.name",
            "together with security.inter.broker.protocol",
        ),
        ({"inter.broker.listener.name": "B"}, "inter.broker.listener.name", "here one of PLAINTEXT"),
        ({"listeners": "SSL://h:1"}, "security.inter.broker.protocol", "or set inter.broker.listener.name"),
        ({"listeners": "CONTROLLER://h:1"}, "listeners", "not in controller.listener.names"),
        (
            {**TLS, "sasl.enabled.mechanisms": "PLAIN"},
            "sasl.mechanism.inter.broker.protocol",
            "must be among sasl.enabled.mechanisms, here PLAIN",
        ),
        ({"early.start.listeners": "X"}, "early.start.listeners", "CONTROLLER, PLAINTEXT"),
        ({"cordoned.log.dirs": "*,/a"}, "cordoned.log.dirs", r"\* alone"),
        ({"log.dirs": "/a", "cordoned.log.dirs": "/b"}, "cordoned.log.dirs", "log directories, /a"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes", "which is 104857600"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip", "overrides is set"),
        (
            {"max.connections.per.ip.overrides": "h"},
            "max.connections.per.ip.overrides",
            "'h' must be host:count",
        ),
        ({"connections.max.idle.ms": "100"}, "connection.failed.authentication.delay.ms", "which is 100"),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "group.coordinator.rebalance.protocols",
            "classic",
        ),
        ({"barnabas.metrics.listener": "9100"}, "barnabas.metrics.listener", "HOST:PORT"),
        ({"barnabas.metrics.listener": "h:65536"}, "barnabas.metrics.listener", "HOST:PORT"),
    ],
)
def test_inconsistent_keys_are_rejected(originals: dict[str, str], key: str, valid: str) -> None:
    with pytest.raises(ConfigError, match=valid) as caught:
        check_broker_config(BrokerConfig(originals))
    assert caught.value.key == key


def test_connection_overrides_set_a_limit_per_host() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": " a:1 , ::1:20,"})
    assert parse_connection_overrides(config) == {"a": 1, "::1": 20}
