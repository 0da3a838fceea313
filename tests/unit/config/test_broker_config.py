import pytest

from barnabas.config.broker_config import BrokerConfig, find_broker_key
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import ListenerAddress, SecurityProtocol


def test_an_unset_key_has_its_default() -> None:
    config = BrokerConfig({})
    assert config.integer("num.partitions") == 1
    assert config.boolean("auto.create.topics.enable") is True
    assert config.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.text("compression.type") == "producer"
    assert config.items("log.cleanup.policy") == ("delete",)
    assert config.integer_or_none("log.retention.ms") is None
    assert config.text_or_none("broker.rack") is None
    assert config.items_or_none("log.dirs") is None
    assert not config.is_set("num.partitions")


def test_a_value_is_parsed_by_the_type_of_its_key() -> None:
    config = BrokerConfig({"num.partitions": " 3 ", "log.dirs": "/a, /b", "log.retention.ms": "5"})
    assert config.integer("num.partitions") == 3
    assert config.items_or_none("log.dirs") == ("/a", "/b")
    assert config.integer_or_none("log.retention.ms") == 5
    assert config.is_set("num.partitions")


def test_an_invalid_value_is_an_error_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value '0' for num\.partitions: must be at least 1"):
        BrokerConfig({"num.partitions": "0"})


def test_reading_another_type_or_an_unknown_key_is_a_bug() -> None:
    config = BrokerConfig({})
    with pytest.raises(AssertionError):
        config.text("num.partitions")
    with pytest.raises(AssertionError):
        config.integer("auto.create.topics.enable")
    with pytest.raises(AssertionError, match="not a configuration key"):
        config.value("num.partition")


def test_unknown_keys_are_kept() -> None:
    assert BrokerConfig({"my.own": " x "}).originals["my.own"] == " x "


@pytest.mark.parametrize(("originals", "node_id"), [({}, 1), ({"node.id": "7"}, 7), ({"broker.id": "8"}, 8)])
def test_node_id_and_broker_id_are_synonyms(originals: dict[str, str], node_id: int) -> None:
    config = BrokerConfig(originals)
    assert config.node_id == node_id
    assert config.integer("broker.id") == node_id


def test_keys_that_kafka_requires_count_as_set() -> None:
    config = BrokerConfig({})
    assert config.items("process.roles") == ("broker", "controller")
    assert config.is_set("controller.listener.names")


def test_the_log_directories_are_log_dirs_or_else_log_dir() -> None:
    assert BrokerConfig({"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")


def test_controller_listeners_are_separate() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://me:9092,CONTROLLER://me:9093",
        }
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.listeners[0].advertised == ListenerAddress("me", 9092)
    assert [listener.name for listener in config.controller_listeners] == ["CONTROLLER"]


def test_a_controller_listener_needs_a_protocol_if_another_listener_is_protected() -> None:
    with pytest.raises(ConfigError, match="CONTROLLER has no entry"):
        BrokerConfig({"listeners": "SSL://:9092,CONTROLLER://:9093"})


def test_a_listener_gets_the_protocol_of_the_map() -> None:
    config = BrokerConfig(
        {
            "listeners": "OUTSIDE://h:1",
            "listener.security.protocol.map": "OUTSIDE:SASL_SSL,CONTROLLER:PLAINTEXT",
        }
    )
    assert config.listeners[0].security_protocol is SecurityProtocol.SASL_SSL


def test_a_listeners_own_values_override_the_common_ones() -> None:
    config = BrokerConfig(
        {
            "ssl.keystore.type": "JKS",
            "listener.name.tls.ssl.keystore.type": "PEM",
            "ssl.client.auth": "required",
        }
    )
    assert config.for_listener("TLS").text("ssl.keystore.type") == "PEM"
    assert config.for_listener("TLS").text("ssl.client.auth") == "required"
    assert config.for_listener("OTHER") is config
    assert config.text("ssl.keystore.type") == "JKS"


def test_a_listeners_own_value_is_validated_like_the_key_it_overrides() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.tls\.ssl\.client\.auth: must be one of required"):
        BrokerConfig({"listener.name.tls.ssl.client.auth": "maybe"})


def test_an_unset_prefixed_key_has_the_common_value() -> None:
    config = BrokerConfig({"ssl.client.auth": "required"})
    assert config.text("listener.name.tls.ssl.client.auth") == "required"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("num.partitions", "num.partitions"),
        ("leader.replication.throttled.rate", "leader.replication.throttled.rate"),
        ("listener.name.a.ssl.key.password", "ssl.key.password"),
        ("listener.name.a.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
    ],
)
def test_a_broker_key_is_found_by_any_of_its_names(name: str, base: str) -> None:
    key = find_broker_key(name)
    assert key is not None
    assert key.name == base


@pytest.mark.parametrize("name", ["nope", "listener.name.a", "listener.name.a.nope", "retention.ms"])
def test_other_names_are_not_broker_keys(name: str) -> None:
    assert find_broker_key(name) is None


def test_dynamic_values_override_static_ones_and_a_brokers_those_of_the_cluster() -> None:
    static = BrokerConfig({"num.io.threads": "1", "message.max.bytes": "10", "compression.type": "gzip"})
    config = static.with_dynamic({"num.io.threads": "3"}, {"num.io.threads": "2", "message.max.bytes": "20"})
    assert config.integer("num.io.threads") == 3
    assert config.integer("message.max.bytes") == 20
    assert config.text("compression.type") == "gzip"
    assert static.with_dynamic({}, {}) is static


def test_a_dynamic_value_hides_static_values_of_its_synonyms() -> None:
    static = BrokerConfig({"log.retention.hours": "1", "log.retention.minutes": "2"})
    config = static.with_dynamic({}, {"log.retention.ms": "3"})
    assert config.integer_or_none("log.retention.ms") == 3
    assert config.integer_or_none("log.retention.minutes") is None


def test_a_class_key_returns_its_built_in_part() -> None:
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert BrokerConfig({"authorizer.class.name": name}).part("authorizer.class.name") == "standard"
    assert BrokerConfig({}).part("authorizer.class.name") == ""
    assert BrokerConfig({}).part("create.topic.policy.class.name") == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("create.topic.policy.class.name", "com.acme.MyPolicy"),
        ("group.share.assignors", "simple,com.acme.Mine"),
    ],
)
def test_a_java_class_without_an_equivalent_is_rejected(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match="a Java class cannot be loaded"):
        BrokerConfig({key: value})


def test_a_java_authorizer_other_than_the_built_in_one_is_rejected() -> None:
    with pytest.raises(
        ConfigError, match=r"must be org\.apache\.kafka\..*StandardAuthorizer or a Python class"
    ):
        BrokerConfig({"authorizer.class.name": "com.acme.MyAuthorizer"})
