"""Delegation tokens: the same requests to Apache Kafka and to Barnabas, by the same users."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from barnabas.client.admin.delegation_tokens import IssuedToken
from barnabas.client.auth.sasl import SaslLogin
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.schema import Message
from differential.sasl import SaslPair, sasl_pair
from support.sasl import log_in
from support.waiting import until
from support.wire import Wire

SECRET = {"delegation_token_secret_key": "secret of the brokers"}
LOGINS = {user: SaslLogin("PLAIN", user, f"{user}-secret") for user in ("alice", "bob")}
BOB = {"owner_principal_type": "User", "owner_principal_name": "bob"}
DAY_MS = 86_400_000
#: Time for Kafka's broker to show its controller's changes.
VISIBLE_S = 10.0
#: Both brokers use the time of this machine.
NEAR_MS = 60_000


class Side:
    """One broker, with a connection for each user."""

    def __init__(self, pair: SaslPair, name: str) -> None:
        self._port = pair.clients[name]
        self._wires = {"nobody": Wire(pair.plaintext[name])}
        for user, login in LOGINS.items():
            self.connect(user, login)

    def connect(self, user: str, login: SaslLogin) -> int:
        """Log a user in; return the error code."""
        self._wires[user] = Wire(self._port)
        return int(log_in(self._wires[user], login).error_code)

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def ask(self, user: str, request: Message, version: int) -> Message:
        response: Message = self._wires[user].ask(request, version)
        return response

    def create(self, user: str, version: int = 3, **fields: object) -> CreateDelegationTokenResponse:
        response = self.ask(user, CreateDelegationTokenRequest(**fields), version)
        assert isinstance(response, CreateDelegationTokenResponse)
        return response

    def renew(self, user: str, hmac: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        return self._change(user, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)

    def expire(self, user: str, hmac: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return self._change(user, request, version)

    def _change(self, user: str, request: Message, version: int) -> tuple[int, int]:
        """Return the error code, and after how many minutes the token expires."""
        response = self.ask(user, request, version)
        assert isinstance(response, RenewDelegationTokenResponse | ExpireDelegationTokenResponse)
        return response.error_code, _minutes(response.expiry_timestamp_ms)

    def describe(self, user: str, owners: list[str] | None, version: int = 3) -> list[tuple[object, ...]]:
        named = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
        response = self.ask(user, DescribeDelegationTokenRequest(owners=named), version)
        assert isinstance(response, DescribeDelegationTokenResponse)
        tokens = sorted(
            (
                token.principal_name,
                token.token_requester_principal_name,
                [renewer.principal_name for renewer in token.renewers],
                _minutes(token.expiry_timestamp),
                _minutes(token.max_timestamp),
            )
            for token in response.tokens
        )
        return [(response.error_code,), *tokens]


def _minutes(time_ms: int) -> int:
    """Round the time from now on, because both brokers answer at different times; 0 and -1 stand for none."""
    return time_ms if time_ms <= 0 else round((time_ms - time.time() * 1000) / NEAR_MS)


def _shown(response: CreateDelegationTokenResponse) -> tuple[object, ...]:
    return (
        response.error_code,
        (response.principal_type, response.principal_name),
        (response.token_requester_principal_type, response.token_requester_principal_name),
        _minutes(response.issue_timestamp_ms),
        _minutes(response.expiry_timestamp_ms),
        _minutes(response.max_timestamp_ms),
        len(response.token_id),
        len(response.hmac),
    )


class Sides:
    """Both brokers, which must answer alike."""

    def __init__(self, pair: SaslPair) -> None:
        self.kafka, self.barnabas = (Side(pair, name) for name in ("kafka", "barnabas"))

    def agree(self, ask: Callable[[Side], object]) -> object:
        """Return the answer of both; Kafka's broker shows changes a moment later."""
        expected, deadline_s = ask(self.barnabas), time.monotonic() + VISIBLE_S
        while (found := ask(self.kafka)) != expected and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert expected == found
        return expected

    def create(self, user: str, version: int = 3, **fields: object) -> dict[Side, bytes]:
        """Create a token on both sides; return its HMACs."""
        responses = {side: side.create(user, version, **fields) for side in (self.barnabas, self.kafka)}
        assert _shown(responses[self.barnabas]) == _shown(responses[self.kafka])
        return {side: bytes(response.hmac) for side, response in responses.items()}


@pytest.fixture(scope="module")
def pair() -> Iterator[SaslPair]:
    with (
        tempfile.TemporaryDirectory(prefix="differential-tokens-") as home,
        sasl_pair(Path(home), **SECRET) as running,
    ):
        yield running


@pytest.fixture
def sides(pair: SaslPair) -> Iterator[Sides]:
    both = Sides(pair)
    yield both
    for side in (both.kafka, both.barnabas):
        side.close()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tokens_are_created_with_the_same_owners_and_lifetimes(sides: Sides, version: int) -> None:
    sides.create("alice", version)
    for lifetime_ms in (-1, 0, 1, DAY_MS // 2, 30 * DAY_MS):
        sides.create("alice", version, max_lifetime_ms=lifetime_ms)
    sides.create("alice", version, renewers=[CreatableRenewers("User", "bob")])
    sides.create("alice", version, renewers=[CreatableRenewers("Group", "staff")])
    sides.create("alice", version, renewers=[CreatableRenewers("User", "bob"), CreatableRenewers("", "x")])
    if version >= 3:
        sides.create("alice", version, **BOB)
        sides.create("alice", version, owner_principal_type="User", owner_principal_name="alice")
        sides.create("alice", version, owner_principal_type=None, owner_principal_name=None)


def renewed(
    hmacs: Mapping[Side, bytes], user: str, period_ms: int, version: int, side: Side
) -> tuple[int, int]:
    return side.renew(user, hmacs[side], period_ms, version)


def expired(
    hmacs: Mapping[Side, bytes], user: str, period_ms: int, version: int, side: Side
) -> tuple[int, int]:
    return side.expire(user, hmacs[side], period_ms, version)


@pytest.mark.parametrize("version", [1, 2])
def test_owners_and_renewers_renew_and_expire_tokens_alike(sides: Sides, version: int) -> None:
    renewers = [CreatableRenewers("User", "bob")]
    tokens = {
        "mine": sides.create("alice"),
        "renewed by bob": sides.create("alice", renewers=renewers),
        "requested": sides.create("alice", **BOB),
    }
    for hmacs in tokens.values():
        for user in LOGINS:
            for period_ms in (-1, 0, DAY_MS // 4, 30 * DAY_MS):
                sides.agree(partial(renewed, hmacs, user, period_ms, version))
            for period_ms in (DAY_MS // 4, 30 * DAY_MS):
                sides.agree(partial(expired, hmacs, user, period_ms, version))
        for user in LOGINS:
            sides.agree(partial(expired, hmacs, user, -1, version))
    for user in LOGINS:
        sides.agree(lambda side, u=user: side.renew(u, b"unknown"))
        sides.agree(lambda side, u=user: side.expire(u, b""))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_users_see_the_same_tokens(sides: Sides, version: int) -> None:
    sides.create("bob", renewers=[CreatableRenewers("User", "alice")])
    for user in LOGINS:
        for owners in (None, [], ["alice"], ["bob"], ["alice", "bob"], ["carol"]):
            sides.agree(lambda side, u=user, o=owners: side.describe(u, o, version))


def test_without_a_login_no_request_is_allowed(sides: Sides) -> None:
    assert sides.agree(lambda side: side.create("nobody").error_code) == (
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
    sides.agree(lambda side: side.renew("nobody", b"x"))
    sides.agree(lambda side: side.expire("nobody", b"x"))
    sides.agree(lambda side: side.describe("nobody", None))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_and_may_not_request_tokens(sides: Sides, mechanism: str) -> None:
    responses = {side: side.create("alice") for side in (sides.kafka, sides.barnabas)}

    def login(side: Side, *, is_delegation_token: bool = True) -> SaslLogin:
        response = responses[side]
        token = IssuedToken(response.token_id, bytes(response.hmac), "", "", (), 0, 0, 0)
        return SaslLogin(mechanism, token.token_id, token.password, is_delegation_token)

    assert sides.agree(lambda side: side.connect("token", login(side))) == ErrorCode.NONE
    sides.agree(lambda side: side.create("token").error_code)
    sides.agree(lambda side: side.renew("token", bytes(responses[side].hmac)))
    sides.agree(lambda side: side.expire("token", bytes(responses[side].hmac)))
    sides.agree(lambda side: side.describe("token", None))
    assert sides.agree(lambda side: side.connect("user", login(side, is_delegation_token=False))) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED
    )
    for side in (sides.kafka, sides.barnabas):
        side.expire("alice", bytes(responses[side].hmac))
    assert sides.agree(lambda side: side.connect("gone", login(side))) == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_an_expired_token_is_not_renewed(sides: Sides) -> None:
    hmacs = sides.create("alice", max_lifetime_ms=1)
    expired = (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    until(lambda: sides.barnabas.renew("alice", hmacs[sides.barnabas]) == expired)
    assert sides.agree(lambda side: side.renew("alice", hmacs[side])) == expired
    sides.agree(lambda side: side.expire("alice", hmacs[side], 1_000))
