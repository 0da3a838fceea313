import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.dynamic_validation import NotChangeable, check_dynamic_change, check_dynamic_values


def refused(name: str, text: str, *, every_broker: bool = False) -> str:
    """Return the error for a value."""
    with pytest.raises(ConfigError) as caught:
        check_dynamic_values({name: text}, every_broker=every_broker)
    return str(caught.value)


def check_change(**values: str) -> None:
    static = BrokerConfig({"listeners": "PLAINTEXT://:9092"})
    after = static.with_dynamic({name.replace("_", "."): text for name, text in values.items()}, {})
    check_dynamic_change(static, after)


@pytest.mark.parametrize(
    "name",
    [
        "log.retention.ms",
        "leader.replication.throttled.rate",
        "my.own.key",
        "listener.name.plaintext.max.connections",
        "listener.name.plaintext",
    ],
)
def test_keys_for_one_broker_and_for_all(name: str) -> None:
    for every_broker in (False, True):
        check_dynamic_values({name: "7"}, every_broker=every_broker)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.plaintext.ssl.client.auth", "required"),
        ("listener.name.plaintext.ssl.keystore.password", "secret"),
        ("listener.name.plaintext.plain.sasl.jaas.config", "secret"),
        ("listener.name.plaintext.connections.max.reauth.ms", "5"),
        ("listener.name.plaintext.log.retention.ms", "5"),
        ("listener.name.plaintext.no.such.key", "5"),
    ],
)
def test_keys_for_one_broker_only(name: str, text: str) -> None:
    check_dynamic_values({name: text}, every_broker=False)
    why = refused(name, text, every_broker=True)
    assert why == (
        f"Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
    )


@pytest.mark.parametrize("name", ["node.id", "log.dirs", "log.retention.hours", "num.partitions"])
def test_read_only_keys_cannot_be_changed(name: str) -> None:
    assert refused(name, "1") == f"Cannot update these configs dynamically: [{name}]"


def test_keys_and_certificates_belong_to_a_listener_and_are_hidden_in_errors() -> None:
    with pytest.raises(NotChangeable) as caught:
        check_dynamic_values({"ssl.key.password": "secret"}, every_broker=False)
    assert str(caught.value).endswith("only per-listener using the listener prefix: [ssl.key.password]")


def test_all_keys_that_cannot_be_set_are_reported_together() -> None:
    with pytest.raises(NotChangeable) as caught:
        check_dynamic_values({"node.id": "2", "log.retention.ms": "5", "log.dirs": "/x"}, every_broker=False)
    assert str(caught.value) == "Cannot update these configs dynamically: [node.id, log.dirs]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.retention.ms", "soon"),
        ("log.segment.bytes", "5"),
        ("listener.name.plaintext.max.connections", "many"),
        ("listener.name.plaintext.ssl.client.auth", "maybe"),
    ],
)
def test_a_value_must_be_valid(name: str, text: str) -> None:
    assert text in refused(name, text)


@pytest.mark.parametrize(
    "values",
    [
        {"num_io_threads": "4"},
        {"num_io_threads": "16"},
        {"log_cleaner_threads": "2"},
        {"num_network_threads": "1"},
        {"log_retention_ms": "-1"},
    ],
)
def test_values_that_may_be_set_after_the_start(values: dict[str, str]) -> None:
    check_change(**values)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"num_io_threads": "3"}, "from 4 to 16"),
        ({"num_io_threads": "17"}, "from 4 to 16"),
        ({"max_connections": "0"}, "at least 1"),
        ({"max_connection_creation_rate": "0"}, "at least 1"),
        ({"log_cleaner_threads": "0"}, "at least 1"),
        ({"log_retention_ms": "0"}, "at least 1"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip.overrides"),
        ({"group_consumer_assignment_interval_ms": "70000"}, "from 0 to 15000"),
        ({"listeners": "OTHER://:1"}, "OTHER"),
    ],
)
def test_values_must_be_consistent_with_the_present_ones(values: dict[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        check_change(**values)


@pytest.mark.parametrize(
    "key",
    [
        "listener.name.clients.barnabas.sasl.oauthbearer.unsecured",
        "listener.name.clients.sasl.oauthbearer.jwks.endpoint.url",
        "listener.name.clients.ssl.allow.dn.changes",
        "listener.name.clients.oauthbearer.sasl.oauthbearer.jwks.endpoint.url",
        "listener.name.clients.ssl.principal.mapping.rules",
        "principal.builder.class",
        "listener.name.clients.principal.builder.class",
    ],
)
def test_what_decides_which_logins_and_certificates_are_accepted_cannot_be_changed_with_a_listener_prefix_either(
    key: str,
) -> None:
    with pytest.raises(NotChangeable, match="Cannot update these configs dynamically"):
        check_dynamic_values({key: "true"}, every_broker=False)
