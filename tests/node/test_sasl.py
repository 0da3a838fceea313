"""Logging in to a real broker, over real sockets."""

import random
import socket
import time
import urllib.request
from collections.abc import Iterator

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.client.blocking import BlockingClient
from barnabas.security.sasl.authenticator import LoginOutcome
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.schema import Message
from barnabas.wire.scram import ScramMechanism, ServerFirst, parse_server_first, salted_password
from support.batches import batch
from support.nodes import frame_of
from support.sasl import ALICE, SASL_SETTINGS, log_in
from support.wire import Wire, produce_request

pytestmark = pytest.mark.kafka_settings(SASL_SETTINGS)

WRONG = SaslLogin("PLAIN", "alice", "wrong")
NAMES = MetadataRequest(topics=[])


def port_of(kafka: EmbeddedBroker, listener: str) -> int:
    return next(port for name, _, port in kafka.server.addresses if name == listener)


@pytest.fixture
def wire(kafka: EmbeddedBroker) -> Iterator[Wire]:
    """A socket to the listener on which clients log in."""
    with Wire(port_of(kafka, "CLIENTS")) as wire:
        yield wire


@pytest.fixture
def open_wire(kafka: EmbeddedBroker) -> Iterator[Wire]:
    """A socket to the listener on which they do not."""
    with Wire(port_of(kafka, "PLAINTEXT")) as wire:
        yield wire


def principal(kafka: EmbeddedBroker) -> str:
    """Of the one connection that there is."""
    [connection] = kafka.server.parts.connections._open
    return str(connection.info.principal)  # type: ignore[attr-defined]


def add_user(wire: Wire, mechanism: ScramMechanism, user: str, password: str, iterations: int = 4096) -> int:
    """Give a user a credential over an open listener; the error code."""
    salted = salted_password(mechanism, password, b"salt", iterations)
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )
    [result] = wire.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion])).results
    assert result.user == user
    return int(result.error_code)


# The channel


@pytest.mark.parametrize("version", [0, 1, 2])
def test_who_has_logged_in_is_served_under_their_name(
    kafka: EmbeddedBroker, wire: Wire, version: int
) -> None:
    assert wire.ask(ApiVersionsRequest("test", "1")).error_code == ErrorCode.NONE
    response = log_in(wire, version=version)
    assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
    assert wire.ask(NAMES).cluster_id
    assert principal(kafka) == "User:alice"


def test_bare_tokens_follow_a_handshake_v0(kafka: EmbeddedBroker, wire: Wire) -> None:
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == ErrorCode.NONE
    wire.send_frame(Exchange(ALICE).first)
    assert wire.receive_frame() == bytes(4)
    assert wire.ask(NAMES).cluster_id
    assert principal(kafka) == "User:alice"


def test_a_bare_token_that_is_wrong_closes_the_connection(wire: Wire) -> None:
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    wire.send_frame(Exchange(WRONG).first)
    assert wire.is_closed()


@pytest.mark.parametrize(
    "request_first",
    [
        NAMES,
        produce_request("t", bytes(16), batch(b"v")),
        CreateTopicsRequest(),
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"),
    ],
)
def test_a_request_before_the_login_closes_the_connection_unanswered(
    wire: Wire, request_first: Message
) -> None:
    wire.send(request_first)
    assert wire.is_closed()


def test_nothing_is_produced_before_the_login(kafka: EmbeddedBroker, wire: Wire, open_wire: Wire) -> None:
    """Not even by the short way that everyday requests take, nor behind a handshake in one packet."""
    kafka.produce("t", b"one")
    topic_id = open_wire.topic_id("t")
    wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    wire.send(produce_request("t", topic_id, batch(b"two")))
    wire.receive(SaslHandshakeRequest, 1, 1)
    response = wire.receive(ProduceRequest, 2)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert wire.is_closed()
    assert open_wire.list_offset("t", -1).offset == 1


def test_a_wrong_password_is_told_without_saying_what_was_wrong(wire: Wire) -> None:
    response = log_in(wire, WRONG)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert wire.is_closed()


@pytest.mark.kafka_settings({"connection.failed.authentication.delay.ms": "0"})
def test_a_failure_need_not_be_told_late(wire: Wire) -> None:
    assert log_in(wire, WRONG).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed()


def test_a_mechanism_that_there_is_not_is_answered_with_those_that_there_are(wire: Wire) -> None:
    response = wire.ask(SaslHandshakeRequest(mechanism="GSSAPI"))
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert wire.is_closed()


@pytest.mark.kafka_settings({"listener.name.clients.sasl.server.max.receive.size": "100"})
def test_frames_are_small_until_the_login(kafka: EmbeddedBroker, wire: Wire) -> None:
    log_in(wire)
    assert wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t" * 200)])).topics
    with Wire(port_of(kafka, "CLIENTS")) as other:
        other.socket.sendall((101).to_bytes(4, "big"))
        assert other.is_closed()


@pytest.mark.parametrize("version", [0, 1])
def test_where_nobody_logs_in_a_login_is_an_error_that_ends_nothing(open_wire: Wire, version: int) -> None:
    response = open_wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    response = open_wire.ask(SaslAuthenticateRequest(auth_bytes=b"x"))
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert open_wire.ask(NAMES).cluster_id


def test_clients_are_sent_back_to_the_listener_by_which_they_came(kafka: EmbeddedBroker, wire: Wire) -> None:
    log_in(wire)
    assert [broker.port for broker in wire.ask(NAMES).brokers] == [port_of(kafka, "CLIENTS")]


@pytest.mark.kafka_settings({"connections.max.reauth.ms": "3600000"})
def test_a_session_tells_when_it_ends_and_can_be_renewed(kafka: EmbeddedBroker, wire: Wire) -> None:
    assert log_in(wire).session_lifetime_ms == 3_600_000
    assert wire.ask(NAMES).cluster_id
    assert log_in(wire).session_lifetime_ms == 3_600_000
    assert wire.ask(NAMES).cluster_id
    other = SaslLogin("PLAIN", "bob", "bob-secret")
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert other.user not in principal(kafka)


@pytest.mark.kafka_settings({"connections.max.reauth.ms": "1"})
def test_a_session_that_was_not_renewed_ends_with_the_next_request(wire: Wire) -> None:
    assert log_in(wire).session_lifetime_ms == 1
    with pytest.raises(EOFError):
        _ = [wire.ask(NAMES) for _ in range(1_000_000)]


@pytest.mark.kafka_settings({"connection.failed.authentication.delay.ms": "0"})
def test_nothing_that_a_stranger_sends_is_served_or_harms_the_broker(kafka: EmbeddedBroker) -> None:
    rng = random.Random(1)
    tokens = [Exchange(ALICE).first, b"n,,n=alice,r=x", b"c=biws,r=x,p=QQ=="]
    frames = [frame_of(request, 0) for request in (SaslHandshakeRequest(), SaslAuthenticateRequest(), NAMES)]
    for _ in range(300):
        with Wire(port_of(kafka, "CLIENTS")) as stranger:
            if rng.random() < 0.8:
                mechanism = rng.choice(["PLAIN", "SCRAM-SHA-256"])
                stranger.ask(SaslHandshakeRequest(mechanism=mechanism), rng.choice([0, 1]))
            frame = bytearray(rng.choice([*tokens, *frames, rng.randbytes(30)]))
            for _ in range(rng.randrange(1, 4)):
                frame[rng.randrange(len(frame))] = rng.randrange(256)
            stranger.send_frame(bytes(frame))
            stranger.socket.shutdown(socket.SHUT_WR)
    with Wire(port_of(kafka, "CLIENTS")) as wire:
        assert log_in(wire).error_code == ErrorCode.NONE
    statistics = kafka.server.statistics
    assert statistics.crashes == {}
    others = [api for key, api in statistics.apis.items() if key not in (17, 18, 36)]
    assert [api.requests_count - api.errors_count for api in others] == [0] * len(others)


@pytest.mark.kafka_settings({"barnabas.metrics.listener": "127.0.0.1:0"})
def test_logins_are_counted_for_who_watches(kafka: EmbeddedBroker, wire: Wire) -> None:
    log_in(wire)
    with Wire(port_of(kafka, "CLIENTS")) as other:
        log_in(other, WRONG)
    url = f"http://127.0.0.1:{kafka.server.metrics_port}/metrics"
    with urllib.request.urlopen(url) as response:
        lines = response.read().decode().splitlines()
    counts = {line for line in lines if line.startswith("barnabas_logins_total{")}
    assert counts == {
        f'barnabas_logins_total{{listener="CLIENTS",mechanism="PLAIN",outcome="{outcome}"}} 1.0'
        for outcome in ("succeeded", "failed")
    }


# SCRAM


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_scram_user_logs_in_by_the_mechanism_of_its_credential(
    kafka: EmbeddedBroker, wire: Wire, open_wire: Wire, mechanism: ScramMechanism
) -> None:
    assert add_user(open_wire, mechanism, "carol", "secret") == ErrorCode.NONE
    open_wire.close()
    assert log_in(wire, SaslLogin(mechanism.title, "carol", "secret")).error_code == ErrorCode.NONE
    assert wire.ask(NAMES).cluster_id


def first_answer(wire: Wire, user: str) -> ServerFirst:
    """What a client is told about a user's salt and iterations."""
    exchange = Exchange(SaslLogin("SCRAM-SHA-256", user, "wrong"))
    assert wire.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == ErrorCode.NONE
    return parse_server_first(wire.ask(SaslAuthenticateRequest(auth_bytes=exchange.first)).auth_bytes)


def test_an_unknown_user_looks_like_the_real_ones_and_the_same_after_a_restart(kafka: EmbeddedBroker) -> None:
    with Wire(port_of(kafka, "PLAINTEXT")) as open_wire:
        add_user(open_wire, ScramMechanism.SCRAM_SHA_256, "carol", "secret", iterations=8192)
    answers = []
    for _ in range(2):
        with Wire(port_of(kafka, "CLIENTS")) as one, Wire(port_of(kafka, "CLIENTS")) as other:
            carol, nobody = first_answer(one, "carol"), first_answer(other, "nobody")
        assert (nobody.iterations, len(nobody.salt)) == (8192, len(carol.salt))
        answers.append((carol.salt, nobody.salt))
        kafka.restart()
    assert answers[0] == answers[1]


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_a_wrong_scram_password_and_an_unknown_user_look_alike(
    wire: Wire, open_wire: Wire, user: str
) -> None:
    add_user(open_wire, ScramMechanism.SCRAM_SHA_256, "carol", "secret")
    response = log_in(wire, SaslLogin("SCRAM-SHA-256", user, "wrong"))
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert wire.is_closed()


def test_credentials_survive_a_restart_and_can_be_taken_away(kafka: EmbeddedBroker, open_wire: Wire) -> None:
    add_user(open_wire, ScramMechanism.SCRAM_SHA_512, "carol", "secret")
    open_wire.close()
    kafka.restart()
    login = SaslLogin("SCRAM-SHA-512", "carol", "secret")
    with Wire(port_of(kafka, "CLIENTS")) as wire:
        log_in(wire, login)
        deletion = ScramCredentialDeletion(name="carol", mechanism=2)
        [result] = wire.ask(AlterUserScramCredentialsRequest(deletions=[deletion])).results
        assert (result.user, result.error_code, result.error_message) == ("carol", 0, None)
    with Wire(port_of(kafka, "CLIENTS")) as wire:
        assert log_in(wire, login).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_credentials_are_described_without_their_secrets(open_wire: Wire) -> None:
    for mechanism in ScramMechanism:
        add_user(open_wire, mechanism, "carol", "secret", 4096 + mechanism)
    asked = [UserName(name="carol"), UserName(name="nobody")]
    carol, nobody = open_wire.ask(DescribeUserScramCredentialsRequest(users=asked)).results
    assert [(info.mechanism, info.iterations) for info in carol.credential_infos] == [(1, 4097), (2, 4098)]
    assert (nobody.error_code, nobody.credential_infos) == (ErrorCode.RESOURCE_NOT_FOUND, [])
    for everybody in (None, []):
        [one] = open_wire.ask(DescribeUserScramCredentialsRequest(users=everybody)).results
        assert one == carol


def test_a_credential_that_cannot_be_is_refused_with_what_can(open_wire: Wire) -> None:
    assert (
        add_user(open_wire, ScramMechanism.SCRAM_SHA_256, "carol", "x", 4095)
        == ErrorCode.UNACCEPTABLE_CREDENTIAL
    )
    assert add_user(open_wire, ScramMechanism.SCRAM_SHA_256, "", "x") == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert open_wire.ask(DescribeUserScramCredentialsRequest()).results == []


# Barnabas's own client


def client_of(kafka: EmbeddedBroker, login: SaslLogin | None) -> BlockingClient:
    return BlockingClient(f"127.0.0.1:{port_of(kafka, 'CLIENTS')}", login=login)


@pytest.mark.parametrize("mechanism", ["PLAIN", *(mechanism.title for mechanism in ScramMechanism)])
def test_the_own_client_logs_in_on_every_connection(
    kafka: EmbeddedBroker, open_wire: Wire, mechanism: str
) -> None:
    for each in ScramMechanism:
        add_user(open_wire, each, "alice", "alice-secret")
    with client_of(kafka, SaslLogin(mechanism, "alice", "alice-secret")) as client:
        kafka.create_topic("t")
        with client.producer() as producer:
            producer.send_and_wait("t", b"one")
        starts = {TopicPartition("t", 0): EARLIEST}
        assert [record.value for record in client.consumer(starts, stop_at_end=True)] == [b"one"]


@pytest.mark.parametrize("login", [WRONG, SaslLogin("SCRAM-SHA-256", "nobody", "x")])
def test_the_own_client_says_who_was_refused(kafka: EmbeddedBroker, login: SaslLogin) -> None:
    with pytest.raises(KafkaError, match=f"refused user '{login.user}'") as refused:
        client_of(kafka, login)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_own_client_says_where_nobody_logs_in(kafka: EmbeddedBroker) -> None:
    with pytest.raises(KafkaError, match="is a listener without SASL"):
        BlockingClient(f"127.0.0.1:{port_of(kafka, 'PLAINTEXT')}", login=ALICE)


@pytest.mark.kafka_settings({"listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-512"})
def test_the_own_client_says_what_the_broker_offers(kafka: EmbeddedBroker) -> None:
    with pytest.raises(KafkaError, match="does not offer PLAIN, but SCRAM-SHA-512"):
        client_of(kafka, ALICE)


@pytest.mark.kafka_settings({"connections.max.reauth.ms": "200"})
def test_the_own_client_renews_its_login_on_the_same_connection(kafka: EmbeddedBroker) -> None:
    """The broker's clock stands still, so that a slow machine does not end the session in between."""
    listeners = kafka.server.parts.listeners
    sasl = listeners._opened["CLIENTS"].network.sasl
    assert sasl is not None
    sasl._now_ms = lambda: 0
    with client_of(kafka, ALICE) as client:
        opened_count = kafka.server.parts.connections.accepted_count
        deadline_s = time.monotonic() + 20
        while (
            "CLIENTS",
            "PLAIN",
            LoginOutcome.RENEWED,
        ) not in listeners.logins and time.monotonic() < deadline_s:
            client.admin.describe_cluster()
        assert listeners.logins["CLIENTS", "PLAIN", LoginOutcome.RENEWED] == 1
        assert kafka.server.parts.connections.accepted_count == opened_count
