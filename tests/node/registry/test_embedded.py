"""The registry in the process of a broker."""

import ssl
from pathlib import Path

import pytest

from barnabas.net.listener import StartError
from barnabas.testing import EmbeddedBroker
from support.certificates import Authority
from support.process import BrokerProcess
from support.registries import RestClient, avro_record

LISTENER = "barnabas.registry.listener"
SCHEMA = avro_record("R", "a")


@pytest.mark.kafka_registry
def test_a_broker_of_a_test_has_a_registry(kafka: EmbeddedBroker) -> None:
    assert RestClient(kafka.registry_url).register("s", SCHEMA) == {"id": 1}


def test_a_restarted_broker_has_the_same_url_and_schemas() -> None:
    with EmbeddedBroker(registry=True) as broker:
        url = broker.registry_url
        RestClient(url).register("s", SCHEMA)
        broker.restart()
        assert broker.registry_url == url
        assert RestClient(url).get("/subjects") == ["s"]


def test_a_broker_without_a_registry_has_no_url(kafka: EmbeddedBroker) -> None:
    with pytest.raises(RuntimeError, match="registry=True"):
        _ = kafka.registry_url


def test_brokers_of_one_cluster_serve_the_same_schemas(kafka_cluster: object) -> None:
    cluster = kafka_cluster(brokers=2, settings={LISTENER: "127.0.0.1:0"})  # type: ignore[operator]
    ports = [broker.server.registry_port for broker in cluster.brokers.values()]
    rests = [RestClient(f"http://127.0.0.1:{port}") for port in ports]
    assert len(set(ports)) == 2
    assert rests[0].register("s", SCHEMA) == {"id": 1}
    assert rests[1].register("t", SCHEMA) == {"id": 1}
    assert rests[0].register("t", avro_record("R", "a", "b?")) == {"id": 2}


def test_with_logins_it_uses_an_open_listener() -> None:
    with EmbeddedBroker(users={"alice": "secret"}, registry=True) as broker:
        assert RestClient(broker.registry_url).register("s", SCHEMA) == {"id": 1}


def test_it_may_require_users(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice=secret\n")
    settings = {"barnabas.registry.users.file": str(tmp_path / "users")}
    with EmbeddedBroker(settings, registry=True) as broker:
        assert RestClient(broker.registry_url).get("/subjects")["error_code"] == 401
        assert RestClient(broker.registry_url, auth=("alice", "secret")).get("/subjects") == []


def test_it_may_use_https(tmp_path: Path) -> None:
    authority = Authority()
    settings = {
        "barnabas.registry.ssl.enable": "true",
        "listener.name.https.ssl.keystore.type": "PEM",
        "listener.name.https.ssl.keystore.location": str(authority.issue().write_pem(tmp_path / "own.pem")),
    }
    with EmbeddedBroker(settings, registry=True) as broker:
        trusting = ssl.create_default_context(cadata=authority.pem)
        assert RestClient(broker.registry_url, verify=trusting).register("s", SCHEMA) == {"id": 1}


def test_its_topic_is_a_setting() -> None:
    with EmbeddedBroker({"barnabas.registry.topic": "schemas"}, registry=True) as broker:
        RestClient(broker.registry_url).register("s", SCHEMA)
        assert "schemas" in broker.server.broker.metadata.image.topics


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"barnabas.registry.users.file": "/nonexistent"}, "/nonexistent"),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "PLAIN",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            },
            "needs a listener without SASL, or the login of brokers",
        ),
    ],
)
def test_a_broker_whose_registry_cannot_be_served_does_not_start(
    settings: dict[str, str], problem: str
) -> None:
    with pytest.raises(StartError, match=problem):
        EmbeddedBroker(settings, registry=True).start()


def test_serve_prints_its_url_and_the_console_decodes_with_it(tmp_path: Path) -> None:
    with BrokerProcess(
        tmp_path, "--set", f"{LISTENER}=127.0.0.1:0", "--set", "barnabas.metrics.listener=127.0.0.1:0"
    ) as broker:
        assert broker.process.stdout
        urls = {}
        while not (line := broker.process.stdout.readline()).startswith("Try"):
            name, _, url = line.strip().partition(": ")
            urls[name] = url
        assert RestClient(urls["Schema registry"]).register("s-value", SCHEMA) == {"id": 1}
        assert broker.terminate() == 0
