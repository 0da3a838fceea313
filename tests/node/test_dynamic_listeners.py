"""Listeners and their authentication change while the broker runs."""

import socket
import time

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.wire import Wire

LISTENERS = "PLAINTEXT://127.0.0.1:0"
PROTOCOLS = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,OTHER:PLAINTEXT,LOGIN:SASL_PLAINTEXT"
STATIC = {"listener.security.protocol.map": PROTOCOLS}


def alter(kafka: EmbeddedBroker, **values: str | None) -> None:
    """Set or delete configs of the broker; `_` stands for a dot."""
    resource = Resource(ResourceKind.BROKER, str(kafka.server.broker.broker_id))
    edits = [
        AlterConfigOp(key.replace("_", "."), OpType.DELETE if value is None else OpType.SET, value)
        for key, value in values.items()
    ]
    error = kafka.client.admin.alter_configs({resource: edits})[resource]
    if error is not None:
        raise error


def port_of(kafka: EmbeddedBroker, listener: str) -> int:
    """Return the port of a listener, which serves once the cluster knows it."""
    port = next(port for name, _, port in kafka.server.addresses if name == listener)
    deadline_s = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        else:
            return port


def listeners(kafka: EmbeddedBroker) -> str:
    """Return the static listeners with the ports of the fixture."""
    return kafka.server.broker.dynamic_config.static.originals["listeners"]


@pytest.mark.kafka_settings(STATIC)
def test_a_listener_opens_and_closes_with_its_connections(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    alter(kafka, listeners=f"{listeners(kafka)},EXTRA://127.0.0.1:0")
    extra = f"127.0.0.1:{port_of(kafka, 'EXTRA')}"
    with BlockingClient(extra) as client:
        assert set(client.admin.describe_topics()) == {"t"}
        [node] = client.admin.describe_cluster().nodes
        assert f"{node.address.host}:{node.address.port}" == extra
        alter(kafka, listeners=None)
        assert [name for name, _, _ in kafka.server.addresses] == ["PLAINTEXT"]
    with pytest.raises(ConnectionError), BlockingClient(extra) as client:
        client.admin.describe_topics()
    assert kafka.client.admin.describe_topics().keys() == {"t"}


@pytest.mark.kafka_settings(STATIC)
def test_the_inter_broker_listener_cannot_be_removed(kafka: EmbeddedBroker) -> None:
    with pytest.raises(KafkaError, match="PLAINTEXT") as refused:
        alter(kafka, listeners="EXTRA://127.0.0.1:0")
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError, match="SSL"):
        alter(kafka, listener_security_protocol_map="PLAINTEXT:SSL")


@pytest.mark.kafka_settings(STATIC)
def test_a_broker_serves_although_an_address_cannot_be_bound(kafka: EmbeddedBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        changed = f"{listeners(kafka)},EXTRA://127.0.0.1:{taken},OTHER://127.0.0.1:0"
        alter(kafka, listeners=changed)
        assert [name for name, _, _ in kafka.server.addresses] == ["PLAINTEXT", "OTHER"]
        kafka.create_topic("still-serving")
        kafka.restart()
        assert [name for name, _, _ in kafka.server.addresses] == ["PLAINTEXT"]
    kafka.restart()
    assert [name for name, _, _ in kafka.server.addresses] == ["PLAINTEXT", "EXTRA", "OTHER"]


def mechanisms(kafka: EmbeddedBroker) -> list[str]:
    """Return the mechanisms offered to a new connection to LOGIN."""
    with Wire(port_of(kafka, "LOGIN")) as wire:
        found: list[str] = wire.ask(SaslHandshakeRequest("none"), 1).mechanisms
        return found


@pytest.mark.kafka_settings({**STATIC, "sasl.enabled.mechanisms": "PLAIN"})
def test_mechanisms_apply_to_the_next_connection(kafka: EmbeddedBroker) -> None:
    alter(kafka, listeners=f"{listeners(kafka)},LOGIN://127.0.0.1:0")
    assert mechanisms(kafka) == ["PLAIN"]
    alter(kafka, listener_name_login_sasl_enabled_mechanisms="SCRAM-SHA-256,PLAIN")
    assert sorted(mechanisms(kafka)) == ["PLAIN", "SCRAM-SHA-256"]
    with pytest.raises(KafkaError, match="GSSAPI"):
        alter(kafka, listener_name_login_sasl_enabled_mechanisms="GSSAPI")


def logs_in(kafka: EmbeddedBroker, user: str, password: str) -> bool:
    """Whether PLAIN succeeds on a new connection to LOGIN."""
    with Wire(port_of(kafka, "LOGIN")) as wire:
        assert wire.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.NONE
        token = f"\0{user}\0{password}".encode()
        return bool(wire.ask(SaslAuthenticateRequest(token), 2).error_code == ErrorCode.NONE)


@pytest.mark.kafka_settings({**STATIC, "sasl.enabled.mechanisms": "PLAIN"})
def test_changed_plain_users_apply_immediately(kafka: EmbeddedBroker) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    alter(kafka, listeners=f"{listeners(kafka)},LOGIN://127.0.0.1:0")
    assert not logs_in(kafka, "alice", "secret")
    alter(kafka, listener_name_login_plain_sasl_jaas_config=f'{module} user_alice="secret";')
    assert logs_in(kafka, "alice", "secret")
    alter(kafka, listener_name_login_plain_sasl_jaas_config=None)
    assert not logs_in(kafka, "alice", "secret")
