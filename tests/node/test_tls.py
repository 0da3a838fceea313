"""Listeners with TLS, with a real broker and real sockets."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.net.connection import ServerConnection
from barnabas.security.sasl.authenticator import LoginOutcome
from barnabas.testing import EmbeddedBroker, EmbeddedCluster
from barnabas.tls.settings import TlsSettings, TrustStore
from support.certificates import Authority
from support.sasl import ALICE, MODULE
from support.tls import (
    AUTHORITY,
    REQUIRED,
    client_of,
    connected,
    failed_handshakes_count,
    port_of,
    settings_of,
    with_keys,
    write_keystore,
)
from support.waiting import until


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    return write_keystore(AUTHORITY.issue(), tmp_path / "own.pem")


@pytest.fixture
def kafka(keystore: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings_of(keystore, **getattr(request, "param", {}))) as broker:
        yield broker


@pytest.mark.parametrize(("listener", "login"), [("SSL", None), ("LOGIN", ALICE)])
def test_records_of_all_sizes_pass_both_ways(
    kafka: EmbeddedBroker, listener: str, login: SaslLogin | None
) -> None:
    kafka.create_topic("t")
    values = [b"%d" % (size % 10) * size for size in (1, 105, 5_462, 16_383, 16_384, 70_003, 1_000_004)]
    with client_of(kafka, listener, login=login) as client:
        with client.producer(linger_ms=0) as producer:
            for value in values * 3:
                producer.send_and_wait("t", value)
        with client.consumer({TopicPartition("t", 0): EARLIEST}, stop_at_end=True) as consumer:
            assert [record.value for record in consumer] == values * 3


@pytest.mark.parametrize("kafka", [REQUIRED], indirect=True)
def test_the_certificate_names_the_user(kafka: EmbeddedBroker) -> None:
    client_keys = with_keys(AUTHORITY.issue(name="alice", hosts=()))
    with client_of(kafka, tls=client_keys) as client:
        assert client.admin.describe_cluster().nodes
        encrypted = [each for each in kafka.server.parts.connections._open if each.listener == "SSL"]
        assert [isinstance(each, ServerConnection) and each.info.principal for each in encrypted] == [
            "User:CN=alice"
        ]
    logins = kafka.server.parts.listeners.logins
    assert logins["SSL", "TLS", LoginOutcome.SUCCEEDED] >= 1


@pytest.mark.parametrize(
    "kafka", [REQUIRED | {"ssl_principal_mapping_rules": "RULE:^CN=(a.*)$/$1/"}], indirect=True
)
def test_rules_map_certificates_to_users(kafka: EmbeddedBroker) -> None:
    with client_of(kafka, tls=with_keys(AUTHORITY.issue(name="alice", hosts=()))) as client:
        assert client.admin.describe_cluster().nodes
    with pytest.raises(BrokerConnectionError):
        client_of(kafka, tls=with_keys(AUTHORITY.issue(name="bob", hosts=())))
    assert failed_handshakes_count(kafka) == 1


@pytest.mark.parametrize("kafka", [REQUIRED], indirect=True)
def test_clients_learn_why_their_handshake_fails(kafka: EmbeddedBroker) -> None:
    with pytest.raises(BrokerConnectionError, match="it requires a client certificate"):
        client_of(kafka)
    with pytest.raises(BrokerConnectionError, match="it does not trust the client certificate"):
        client_of(kafka, tls=with_keys(Authority("Another").issue()))
    old = ssl.create_default_context(cadata=AUTHORITY.pem)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="ALERT"):
        connected(kafka, old)
    until(lambda: failed_handshakes_count(kafka) == 3)


@pytest.mark.parametrize("kafka", [{"ssl_enabled_protocols": "TLSv1.3"}], indirect=True)
def test_an_older_version_is_refused(kafka: EmbeddedBroker) -> None:
    old = ssl.create_default_context(cadata=AUTHORITY.pem)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
        connected(kafka, old)
    with connected(kafka) as encrypted:
        assert encrypted.version() == "TLSv1.3"


def test_a_client_refuses_a_wrong_host_name_and_an_unknown_authority(kafka: EmbeddedBroker) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connected(kafka, name="broker.example")
    with pytest.raises(BrokerConnectionError, match="certificate is not trusted"):
        client_of(kafka, tls=TlsSettings(trust=TrustStore("PEM", certificates=Authority("Another").pem)))


def test_clients_without_tls_are_disconnected_and_hear_what_may_be_wrong(kafka: EmbeddedBroker) -> None:
    with pytest.raises(BrokerConnectionError, match="is it a Kafka listener without TLS"):
        client_of(kafka, tls=None)
    with pytest.raises(BrokerConnectionError, match="is it a listener with TLS"):
        client_of(kafka, "PLAINTEXT")
    until(lambda: failed_handshakes_count(kafka) == 1)


def test_a_connection_that_ends_within_its_handshake_leaves_nothing(kafka: EmbeddedBroker) -> None:
    connections = kafka.server.parts.connections
    before = len(connections)
    with ExitStack() as stack:
        for _ in range(50):
            silent = socket.create_connection(("127.0.0.1", port_of(kafka, "SSL")), 10)
            stack.enter_context(closing(silent))
            silent.sendall(b"\x16\x03\x01\x02")
        until(lambda: len(connections) == before + 50)
        with client_of(kafka) as client:  # is served all the same
            assert client.admin.describe_cluster().nodes
    until(lambda: len(connections) == before)


def test_changed_certificates_are_used_for_new_connections(kafka: EmbeddedBroker, keystore: Path) -> None:
    with client_of(kafka) as client:
        renewed = AUTHORITY.issue()
        write_keystore(renewed, keystore)
        expected = ssl.PEM_cert_to_DER_cert(renewed.certificate_pem)

        def presented() -> bytes | None:
            with connected(kafka) as encrypted:
                return encrypted.getpeercert(True)

        until(lambda: presented() == expected)
        assert client.admin.describe_cluster().nodes


def test_brokers_replicate_over_tls_and_log_in_to_each_other(tmp_path: Path) -> None:
    settings = settings_of(
        write_keystore(AUTHORITY.issue(), tmp_path / "own.pem"),
        **REQUIRED,
        inter_broker_listener_name="LOGIN",
        sasl_mechanism_inter_broker_protocol="PLAIN",
    )
    own = f'{MODULE} required username="broker" password="broker-secret" user_broker="broker-secret";'
    settings["listener.name.login.plain.sasl.jaas.config"] = own
    settings["listener.name.login.ssl.client.auth"] = "required"
    with EmbeddedCluster(3, settings) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "3"})
        cluster.produce("t", "value")
        assert list(cluster.in_sync("t")) == [1, 2, 3]
        leader = cluster.brokers[cluster.leader("t") or 0]
        assert leader.server.parts.connections.by_listener()["LOGIN"] >= 2
        logins = leader.server.parts.listeners.logins
        assert logins["LOGIN", "PLAIN", LoginOutcome.SUCCEEDED] >= 2
