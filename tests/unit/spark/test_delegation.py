from collections.abc import Iterator

import pytest

from barnabas.base.clock import ManualClock, SystemClock
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.client.core.cluster import ClusterClient
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.delegation import VARIABLE, task_login, uses_delegation_tokens
from pyspark_barnabas.option_values import OptionError
from support.loop import on_loop

ALICE = SaslLogin("PLAIN", "alice", "alice-secret")
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


def test_tokens_are_off_unless_the_option_or_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not uses_delegation_tokens("", ALICE)
    assert uses_delegation_tokens("true", ALICE)
    monkeypatch.setenv(VARIABLE, "true")
    assert uses_delegation_tokens("", ALICE)
    assert not uses_delegation_tokens("false", ALICE)


@pytest.mark.parametrize(
    "login",
    [
        None,
        SaslLogin("OAUTHBEARER", "alice", token_source=TokenSource("file:///token")),
        SaslLogin("SCRAM-SHA-256", "id", "hmac", is_delegation_token=True),
    ],
)
def test_tokens_need_a_login_with_a_password(
    monkeypatch: pytest.MonkeyPatch, login: SaslLogin | None
) -> None:
    with pytest.raises(OptionError, match="it needs a login with a password"):
        uses_delegation_tokens("true", login)
    monkeypatch.setenv(VARIABLE, "true")
    assert not uses_delegation_tokens("", login)
