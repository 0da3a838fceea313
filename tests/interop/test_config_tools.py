"""kafka-configs on every resource type with configs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker
from interop.reference import tool


class Configs:
    """Runs kafka-configs for one entity."""

    def __init__(self, broker: Broker, *entity: str) -> None:
        self._broker = broker
        self._entity = entity

    def _run(self, *arguments: str | Path, check: bool = True) -> str:
        server = ("--bootstrap-server", self._broker.bootstrap)
        done = tool("kafka-configs", *server, *self._entity, *arguments, check=check)
        return done.stdout if check else done.stdout + done.stderr

    def add(self, *settings: str) -> str:
        return self._run("--alter", "--add-config", ",".join(settings))

    def add_file(self, path: Path) -> str:
        return self._run("--alter", "--add-config-file", path)

    def delete(self, *keys: str) -> str:
        return self._run("--alter", "--delete-config", ",".join(keys))

    def refused(self, *arguments: str) -> str:
        return self._run("--alter", *arguments, check=False)

    def described(self, *arguments: str) -> dict[str, str]:
        """Return --describe's output for each key: value, flags and synonyms."""
        lines = [line.strip() for line in self._run("--describe", *arguments).splitlines()]
        entries = (line.partition("=") for line in lines if "sensitive=" in line or " synonyms=" in line)
        return {key: rest for key, _, rest in entries}


@pytest.fixture
def topic_configs(broker: Broker, topic: str) -> Configs:
    return Configs(broker, "--entity-type", "topics", "--entity-name", topic)


def test_topics_are_altered_and_described(topic_configs: Configs) -> None:
    assert "Completed updating config" in topic_configs.add(
        "retention.ms=3600000", "cleanup.policy=[compact,delete]"
    )
    described = topic_configs.described()
    assert described["retention.ms"].startswith(
        "3600000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms="
    )
    assert described["cleanup.policy"].startswith("compact,delete ")
    topic_configs.delete("retention.ms")
    assert set(topic_configs.described()) == {"cleanup.policy"}
    assert topic_configs.described("--all")["retention.ms"].startswith(
        "604800000 sensitive=false synonyms={}"
    )


def test_configs_can_be_read_from_a_file(topic_configs: Configs, tmp_path: Path) -> None:
    path = tmp_path / "configs.properties"
    path.write_text("max.message.bytes=2000000\nsegment.bytes=10485760\n")
    topic_configs.add_file(path)
    assert set(topic_configs.described()) == {"max.message.bytes", "segment.bytes"}


def test_an_invalid_value_is_reported(topic_configs: Configs) -> None:
    assert "retention.ms" in topic_configs.refused("--add-config", "retention.ms=soon")
    assert "no.such.key" in topic_configs.refused("--add-config", "no.such.key=1")
    assert topic_configs.described() == {}


#: Broker configs that tests alter.
ALTERED = ("log.retention.ms", "message.max.bytes", "listener.name.other.ssl.key.password")


@pytest.fixture(scope="module")
def broker_configs(broker: Broker) -> Iterator[tuple[Configs, Configs]]:
    """Return the configs of this broker, and the defaults of all brokers."""
    own = Configs(broker, "--entity-type", "brokers", "--entity-name", str(broker.node_id))
    every = Configs(broker, "--entity-type", "brokers", "--entity-default")
    yield own, every
    own.delete(*ALTERED)
    every.delete(*ALTERED)


def test_a_brokers_own_value_overrides_the_default_of_all_brokers(
    broker_configs: tuple[Configs, Configs],
) -> None:
    own, every = broker_configs
    every.add("log.retention.ms=7200000")
    assert every.described()["log.retention.ms"].startswith("7200000 ")
    own.add("log.retention.ms=3600000")
    described = own.described("--all")["log.retention.ms"]
    assert described.startswith(
        "3600000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=3600000, "
    )
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000" in described
    own.delete("log.retention.ms")
    assert own.described("--all")["log.retention.ms"].startswith("7200000 ")


def test_a_broker_config_applies_to_its_topics(
    broker_configs: tuple[Configs, Configs], topic_configs: Configs
) -> None:
    broker_configs[1].add("message.max.bytes=777777")
    described = topic_configs.described("--all")["max.message.bytes"]
    assert described.startswith(
        "777777 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=777777"
    )


def test_a_read_only_config_cannot_be_altered(
    broker_configs: tuple[Configs, Configs],
) -> None:
    assert "log.dirs" in broker_configs[0].refused("--add-config", "log.dirs=/elsewhere")


def test_passwords_are_never_shown(broker_configs: tuple[Configs, Configs]) -> None:
    own, _ = broker_configs
    own.add("listener.name.other.ssl.key.password=secret")
    described = own.described()
    assert described["listener.name.other.ssl.key.password"].startswith("null sensitive=true")


def test_logger_levels_are_set_and_deleted(broker: Broker) -> None:
    loggers = Configs(broker, "--entity-type", "broker-loggers", "--entity-name", str(broker.node_id))
    before = loggers.described()["root"]
    loggers.add("root=ERROR")
    assert loggers.described()["root"].startswith("ERROR ")
    loggers.add("root=" + before.split()[0])
    assert loggers.described()["root"] == before
    assert "LOUD" in loggers.refused("--add-config", "root=LOUD")


def test_groups_and_client_metrics_have_their_own_configs(broker: Broker) -> None:
    group = Configs(broker, "--entity-type", "groups", "--entity-name", "billing")
    assert "Completed updating config" in group.add("consumer.session.timeout.ms=50000")
    assert group.described()["consumer.session.timeout.ms"].startswith("50000 ")
    group.delete("consumer.session.timeout.ms")
    assert "consumer.session.timeout.ms" in group.refused("--add-config", "consumer.session.timeout.ms=-1")
    metrics = Configs(broker, "--entity-type", "client-metrics", "--entity-name", "all-clients")
    metrics.add("interval.ms=60000", "metrics=[org.apache.kafka.producer.]")
    assert metrics.described()["interval.ms"].startswith("60000 ")
    metrics.delete("interval.ms", "metrics")
    assert metrics.described() == {}
