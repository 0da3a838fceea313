"""OAUTHBEARER with a real broker and an authorization server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.client.blocking import BlockingClient
from barnabas.security.sasl.authenticator import LoginOutcome
from barnabas.telemetry.logs import set_level
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from support.oauth import (
    AUDIENCE,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    AuthorizationServer,
    Signer,
    authorization_server,
)
from support.waiting import until

SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with authorization_server() as running:
        yield running


@pytest.fixture
def kafka(server: AuthorizationServer) -> Iterator[EmbeddedBroker]:
    settings = {
        **SETTINGS,
        "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    with EmbeddedBroker(settings) as broker:
        until(lambda: server.keys_count)
        yield broker


def client_of(kafka: EmbeddedBroker, source: TokenSource) -> BlockingClient:
    port = next(port for name, _, port in kafka.server.addresses if name == "CLIENTS")
    return BlockingClient(f"127.0.0.1:{port}", login=SaslLogin("OAUTHBEARER", "someone", token_source=source))


def credentials(server: AuthorizationServer, secret: str = CLIENT_SECRET) -> TokenSource:
    return TokenSource(f"{server.url}/token", CLIENT_ID, secret, "kafka")


def principals(kafka: EmbeddedBroker) -> set[str]:
    from barnabas.net.connection import ServerConnection

    connections = [each for each in kafka.server.parts.connections._open if each.listener == "CLIENTS"]
    return {each.info.principal for each in connections if isinstance(each, ServerConnection)}


def is_served(kafka: EmbeddedBroker, source: TokenSource) -> bool:
    try:
        with client_of(kafka, source) as client:
            return bool(client.admin.describe_cluster().nodes)
    except KafkaError:
        return False


def test_a_client_gets_its_token_with_its_credentials(
    kafka: EmbeddedBroker, server: AuthorizationServer
) -> None:
    until(lambda: is_served(kafka, credentials(server)))
    tokens_count = server.tokens_count
    with client_of(kafka, credentials(server)) as client:
        assert client.admin.describe_cluster().nodes
        kafka.create_topic("t")
        with client.producer() as producer:
            producer.send_and_wait("t", b"value")
        assert principals(kafka) == {f"User:{CLIENT_ID}"}
    assert server.scope == "kafka"
    assert server.tokens_count == tokens_count + 1  # for all connections of a client


def test_a_client_reads_its_token_from_a_file(
    kafka: EmbeddedBroker, server: AuthorizationServer, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(server.signers[0].token(sub="carol") + "\n")
    until(lambda: is_served(kafka, TokenSource(path.as_uri())))


def test_a_session_is_renewed_before_its_token_expires(
    kafka: EmbeddedBroker, server: AuthorizationServer
) -> None:
    until(lambda: is_served(kafka, credentials(server)))
    server.lifetime_s = 2.0
    with client_of(kafka, credentials(server)) as client:
        logins = kafka.server.parts.listeners.logins

        def renewals_count() -> int:
            assert client.admin.describe_cluster().nodes
            return logins["CLIENTS", "OAUTHBEARER", LoginOutcome.RENEWED]

        until(lambda: renewals_count() >= 1)


def test_tokens_that_are_not_valid_are_refused_and_not_logged(
    kafka: EmbeddedBroker, server: AuthorizationServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    until(lambda: is_served(kafka, credentials(server)))
    set_level("barnabas.security", "INFO")
    path = tmp_path / "token"
    secrets = []
    for signer, claims in [
        (Signer(), {}),
        (server.signers[0], {"aud": "another"}),
        (server.signers[0], {"exp": 1}),
    ]:
        secrets.append(signer.token(**claims))
        path.write_text(secrets[-1])
        with pytest.raises(KafkaError) as refused:
            client_of(kafka, TokenSource(path.as_uri()))
        assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid_token" in str(refused.value)
    printed = "".join(capfd.readouterr())
    set_level("barnabas.security", "WARNING")
    assert "the token has expired" in printed
    assert not [secret for secret in secrets if secret in printed or secret.split(".")[2] in printed]


def test_new_keys_are_found_and_the_old_ones_survive_an_outage(
    kafka: EmbeddedBroker, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.security.jwks.EARLY_REFRESH_MS", 0)
    until(lambda: is_served(kafka, credentials(server)))
    server.signers = [Signer("two")]
    until(lambda: is_served(kafka, credentials(server)))
    server.is_down = True
    assert is_served(kafka, credentials(server))


def test_wrong_credentials_are_reported_without_the_secret(
    kafka: EmbeddedBroker, server: AuthorizationServer
) -> None:
    with pytest.raises(KafkaError, match=f"refused client {CLIENT_ID}: 401") as refused:
        client_of(kafka, credentials(server, "wrong-secret"))
    assert "wrong-secret" not in str(refused.value)


def test_a_broker_for_tests_accepts_tokens_without_signature() -> None:
    settings = {**SETTINGS, "barnabas.sasl.oauthbearer.unsecured": "true"}
    with EmbeddedBroker(settings) as broker, client_of(broker, TokenSource(unsecured_user="dave")) as client:
        assert client.admin.describe_cluster().nodes
        assert principals(broker) == {"User:dave"}
