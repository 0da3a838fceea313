"""Brokers that log in to each other with OAUTHBEARER, and an authorization server."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.security.sasl.authenticator import LoginOutcome
from barnabas.testing import EmbeddedCluster
from support.oauth import (
    AUDIENCE,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    AuthorizationServer,
    authorization_server,
)
from support.waiting import until

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
JAAS = "listener.name.brokers.oauthbearer.sasl.jaas.config"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "BROKERS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with authorization_server() as running:
        yield running


def checked(server: AuthorizationServer) -> dict[str, str]:
    """Return the settings of brokers that check tokens of a server, and are the only ones that may replicate."""
    return {
        **SETTINGS,
        "super.users": f"User:{CLIENT_ID};User:ANONYMOUS",
        "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }


def with_credentials(server: AuthorizationServer) -> dict[str, str]:
    return {
        **checked(server),
        "listener.name.brokers.sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.scope": "kafka",
    }


def with_credentials_in_jaas(server: AuthorizationServer) -> dict[str, str]:
    options = f'clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}" scope="kafka"'
    return {
        **checked(server),
        "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        JAAS: f"{MODULE} required {options};",
    }


def logins_count(cluster: EmbeddedCluster, outcome: LoginOutcome) -> int:
    listeners = [broker.server.parts.listeners for broker in cluster.brokers.values()]
    return sum(each.logins["BROKERS", "OAUTHBEARER", outcome] for each in listeners)


def replicates(cluster: EmbeddedCluster, brokers_count: int) -> None:
    """Check that a record of a new topic reaches all brokers."""
    cluster.create_topic("t", configs={"min.insync.replicas": str(brokers_count)})
    cluster.produce("t", "value")
    assert list(cluster.in_sync("t")) == [*range(1, brokers_count + 1)]


@pytest.mark.parametrize("settings_of", [with_credentials, with_credentials_in_jaas])
def test_brokers_log_in_to_each_other_with_client_credentials(
    server: AuthorizationServer, settings_of: Callable[[AuthorizationServer], Mapping[str, str]]
) -> None:
    with EmbeddedCluster(3, settings_of(server)) as cluster:
        replicates(cluster, 3)
        assert logins_count(cluster, LoginOutcome.SUCCEEDED) >= 2
    assert server.tokens_count <= 3  # one for each broker, not for each of its connections
    assert server.scope == "kafka"


def test_brokers_log_in_to_each_other_with_a_token_in_a_file(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(server.signers[0].token(sub=CLIENT_ID))
    with EmbeddedCluster(
        2, {**checked(server), "sasl.oauthbearer.token.endpoint.url": path.as_uri()}
    ) as cluster:
        replicates(cluster, 2)
    assert server.tokens_count == 0


def test_brokers_for_tests_log_in_to_each_other_with_tokens_without_signature() -> None:
    settings = {
        **SETTINGS,
        "super.users": "User:broker;User:ANONYMOUS",
        "barnabas.sasl.oauthbearer.unsecured": "true",
        JAAS: f'{MODULE} required unsecuredLoginStringClaim_sub="broker";',
    }
    with EmbeddedCluster(2, settings) as cluster:
        replicates(cluster, 2)


def test_sessions_between_brokers_are_renewed_before_their_tokens_expire(server: AuthorizationServer) -> None:
    server.lifetime_s = 4.0
    with EmbeddedCluster(2, with_credentials(server)) as cluster:
        replicates(cluster, 2)
        tokens_count = server.tokens_count
        until(lambda: logins_count(cluster, LoginOutcome.RENEWED) >= 4)
        assert server.tokens_count > tokens_count
        assert logins_count(cluster, LoginOutcome.EXPIRED) == 0
        cluster.produce("t", "later")
        assert list(cluster.in_sync("t")) == [1, 2]


def test_a_broker_that_starts_without_the_authorization_server_follows_when_that_is_back(
    server: AuthorizationServer,
) -> None:
    with EmbeddedCluster(2, with_credentials(server)) as cluster:
        replicates(cluster, 2)
        leader = cluster.leader("t")
        assert leader is not None
        follower = 3 - leader
        server.issues_tokens = False
        requests_count = server.requests_count
        cluster.restart(follower)
        until(lambda: server.requests_count > requests_count + 1)
        assert list(cluster.in_sync("t")) == [leader]
        server.issues_tokens = True
        until(lambda: list(cluster.in_sync("t")) == [1, 2])
        cluster.produce("t", "later")
