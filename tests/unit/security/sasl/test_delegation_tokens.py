import hashlib

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.delegation_tokens import (
    DelegationToken,
    Lifetimes,
    new_token,
    token_credentials,
    token_hmac,
    token_key,
)
from barnabas.metadata.scram import SALT_BYTES
from barnabas.security.sasl.delegation_tokens import DelegationTokens
from barnabas.wire.scram import ScramMechanism

MECHANISM = ScramMechanism.SCRAM_SHA_256


class Broker:
    """The tokens of a broker with one token, which is valid for a second."""

    def __init__(self, secret_key: str | None = "secret") -> None:
        self.clock = ManualClock()
        hmac = token_hmac("secret", "id")
        lifetimes, now_ms = Lifetimes(5_000, 1_000), self.clock.wall_ms()
        token = new_token("id", "User:alice", "User:admin", (), now_ms, lifetimes, token_credentials(hmac))
        self.stored: dict[str, DelegationToken] = {token_key(hmac): token}
        self.tokens = DelegationTokens(secret_key, lambda: self.stored, self.clock)


def test_a_token_acts_for_its_owner_for_its_remaining_lifetime() -> None:
    broker = Broker()
    broker.clock.advance(400)
    credential = broker.tokens.credential_of(MECHANISM, "id")
    assert credential is not None
    assert (credential.user, credential.lifetime_ms) == ("alice", 600)


def test_an_expired_token_has_no_credential() -> None:
    broker = Broker()
    broker.clock.advance(1_001)
    assert broker.tokens.credential_of(MECHANISM, "id") is None


def test_a_removed_token_has_no_credential() -> None:
    broker = Broker()
    assert broker.tokens.credential_of(MECHANISM, "id") is not None
    broker.stored.clear()
    assert broker.tokens.credential_of(MECHANISM, "id") is None


def test_an_unknown_token_has_no_credential() -> None:
    assert Broker().tokens.credential_of(MECHANISM, "other") is None


def test_another_secret_ends_all_tokens() -> None:
    assert Broker("changed").tokens.credential_of(MECHANISM, "id") is None
    assert Broker(None).tokens.credential_of(MECHANISM, "id") is None


def test_a_login_derives_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Broker().tokens
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", None)
    for mechanism in ScramMechanism:
        assert tokens.credential_of(mechanism, "id") is not None


def test_mechanisms_have_different_keys() -> None:
    tokens = Broker().tokens
    found = [tokens.credential_of(mechanism, "id") for mechanism in ScramMechanism]
    assert len({each.credential.stored_key for each in found if each}) == 2


def test_the_salt_looks_like_that_of_an_unknown_token() -> None:
    found = Broker().tokens.credential_of(MECHANISM, "id")
    assert found is not None
    salt = found.credential.salt
    assert len(salt) == SALT_BYTES
    assert not salt.isascii()  # those of unknown tokens are random bytes
