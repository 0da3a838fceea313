from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock, SystemClock
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.client.core.cluster import ClusterClient
from barnabas.reading.option_values import OptionError
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.delegation import VARIABLE, task_login, uses_delegation_tokens
from support.loop import on_loop
from support.oauth import Signer

ALICE = SaslLogin("PLAIN", "alice", "alice-secret")
BY_TOKENS = SaslLogin("OAUTHBEARER", "alice", token_source=TokenSource("file:///token"))
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    settings = {"delegation.token.secret.key": "secret of the brokers"}
    with EmbeddedBroker(settings, {"alice": "alice-secret"}) as broker:
        yield broker


@on_loop
async def test_a_token_is_used_for_half_of_its_lifetime(guarded: EmbeddedBroker) -> None:
    clock = ManualClock(SystemClock().wall_ms())
    async with ClusterClient(guarded.bootstrap, login=ALICE) as cluster:
        first = await task_login(cluster, ALICE, clock)
        assert (first.mechanism, first.is_delegation_token) == ("SCRAM-SHA-256", True)
        assert first.password not in ("", "alice-secret")
        clock.advance(DAY_MS // 2 - 60_000)
        assert await task_login(cluster, ALICE, clock) == first
        clock.advance(120_000)
        second = await task_login(cluster, ALICE, clock)
        assert second.user != first.user
    async with ClusterClient(guarded.bootstrap, login=second) as cluster:
        await cluster.refresh([])


@on_loop
async def test_a_token_that_others_may_end_is_not_used(guarded: EmbeddedBroker) -> None:
    clock = ManualClock(SystemClock().wall_ms())
    async with ClusterClient(guarded.bootstrap, login=ALICE) as cluster:
        shared = await DelegationTokenAdmin(cluster).create(renewers=["User:bob"])
        assert (await task_login(cluster, ALICE, clock)).user != shared.token_id


@pytest.fixture(scope="module")
def by_tokens() -> Iterator[EmbeddedBroker]:
    """Run a broker that accepts any token, and takes the user from the claim `client`."""
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-256",
        "barnabas.sasl.oauthbearer.unsecured": "true",
        "sasl.oauthbearer.sub.claim.name": "client",
        "delegation.token.secret.key": "secret of the brokers",
    }
    with EmbeddedBroker(settings) as broker:
        yield broker


def oauth_login(directory: Path, subject_claim: str) -> SaslLogin:
    path = directory / "token"
    path.write_text(Signer().token(sub="alice", client="orders"))
    source = TokenSource(path.as_uri(), subject_claim=subject_claim)
    return SaslLogin("OAUTHBEARER", path.as_uri(), token_source=source)


@on_loop
async def test_a_token_of_oauthbearer_names_the_user(by_tokens: EmbeddedBroker, tmp_path: Path) -> None:
    login, clock = oauth_login(tmp_path, "client"), ManualClock(SystemClock().wall_ms())
    async with ClusterClient(by_tokens.bootstrap, login=login) as cluster:
        task = await task_login(cluster, login, clock)
        assert await task_login(cluster, login, clock) == task
        [token] = await DelegationTokenAdmin(cluster).describe()
    assert (token.token_id, token.owner) == (task.user, "User:orders")
    assert (task.mechanism, task.is_delegation_token, task.token_source) == ("SCRAM-SHA-256", True, None)
    async with ClusterClient(by_tokens.bootstrap, login=task) as cluster:
        await cluster.refresh([])


@on_loop
async def test_another_claim_than_that_of_the_brokers_is_reported(
    by_tokens: EmbeddedBroker, tmp_path: Path
) -> None:
    login, clock = oauth_login(tmp_path, "sub"), ManualClock(SystemClock().wall_ms())
    tokens_count = len(by_tokens.server.broker.image.delegation_tokens)
    async with ClusterClient(by_tokens.bootstrap, login=login) as cluster:
        with pytest.raises(
            OptionError, match=r"as 'User:orders', but .* names 'User:alice': set .*sub\.claim"
        ):
            await task_login(cluster, login, clock)
    assert len(by_tokens.server.broker.image.delegation_tokens) == tokens_count


def test_tokens_are_off_unless_the_option_or_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not uses_delegation_tokens("", ALICE)
    assert uses_delegation_tokens("true", ALICE)
    assert uses_delegation_tokens("true", BY_TOKENS)
    monkeypatch.setenv(VARIABLE, "true")
    assert uses_delegation_tokens("", ALICE)
    assert uses_delegation_tokens("", BY_TOKENS)
    assert not uses_delegation_tokens("false", ALICE)


@pytest.mark.parametrize(
    "login",
    [None, SaslLogin("SCRAM-SHA-256", "id", "hmac", is_delegation_token=True)],
)
def test_tokens_need_a_login_that_may_create_them(
    monkeypatch: pytest.MonkeyPatch, login: SaslLogin | None
) -> None:
    with pytest.raises(
        OptionError, match=r"it needs a login by PLAIN, .*OAUTHBEARER, and without a delegation token"
    ):
        uses_delegation_tokens("true", login)
    monkeypatch.setenv(VARIABLE, "true")
    assert not uses_delegation_tokens("", login)
