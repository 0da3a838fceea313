import random
from base64 import b64encode
from dataclasses import replace

import pytest

from barnabas.metadata import delegation_tokens
from barnabas.metadata.decision import Decision
from barnabas.metadata.delegation_tokens import (
    DELEGATION_TOKENS,
    RENEWERS_BYTES_MAX,
    DelegationToken,
    Lifetimes,
    decide_create,
    decide_expire,
    decide_remove_expired,
    decide_renew,
    new_token,
    token_credentials,
    token_hmac,
    token_key,
)
from barnabas.metadata.record_type import Table, split_key
from barnabas.metadata.scram import ITERATIONS_MIN, SALT_BYTES, ScramCredential
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism, client_key, salted_password

LIFETIMES = Lifetimes(max_ms=1_000, renewal_ms=100)
HMAC = token_hmac("secret", "id")
TOKEN = new_token("id", "User:alice", "User:admin", ("User:bob",), 10_000, LIFETIMES, token_credentials(HMAC))
KEY = token_key(HMAC)
TOKENS = Table({KEY: TOKEN}, {KEY: 7})


def written(decision: Decision[int]) -> DelegationToken | None:
    """Return the token that a decision about `TOKENS` writes."""
    [change] = decision.changes
    assert split_key(change.key) == ("delegation_tokens", KEY)
    assert decision.reads == {change.key: 7}
    return None if change.value is None else DELEGATION_TOKENS.decode(change.value)


def code_of(raised: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return raised.value.code


def test_a_token_expires_after_the_renewal_period_and_at_its_maximum_lifetime() -> None:
    assert (TOKEN.issued_ms, TOKEN.expires_ms, TOKEN.expires_max_ms) == (10_000, 10_100, 11_000)
    short = new_token("id", "User:alice", "User:alice", (), 10_000, Lifetimes(max_ms=50, renewal_ms=100), {})
    assert (short.expires_ms, short.expires_max_ms) == (10_050, 10_050)
    endless = new_token("id", "User:alice", "User:alice", (), 10_000, Lifetimes(2**63 - 1, 2**63 - 1), {})
    assert endless.expires_ms == endless.expires_max_ms == 2**63 - 1


def test_a_token_is_stored_as_it_was_created() -> None:
    decision = decide_create(Table(), KEY, TOKEN)
    [change] = decision.changes
    assert change.value is not None
    assert DELEGATION_TOKENS.decode(change.value) == TOKEN


def test_neither_the_password_nor_what_it_is_computed_from_is_stored() -> None:
    secret = random.Random(1).randbytes(16).hex()
    hmac = token_hmac(secret, "id")
    token = replace(TOKEN, credentials=token_credentials(hmac))
    [change] = decide_create(Table(), token_key(hmac), token).changes
    stored = change.key.encode() + (change.value or b"")
    password = b64encode(hmac)
    hidden = [secret.encode(), hmac, hmac.hex().encode(), password]
    for mechanism, credential in token.credentials.items():
        salted = salted_password(mechanism, password.decode(), credential.salt, credential.iterations)
        hidden += [b64encode(salted), b64encode(client_key(mechanism, salted))]
        assert b64encode(credential.stored_key) in stored
    assert [each for each in hidden if each in stored] == []


def test_each_mechanism_has_the_keys_of_the_password() -> None:
    for mechanism in ScramMechanism:
        stored = TOKEN.credentials[mechanism]
        password = b64encode(HMAC).decode()
        assert stored == ScramCredential.of_password(mechanism, password, stored.salt, stored.iterations)
        assert (len(stored.salt), stored.iterations) == (SALT_BYTES, ITERATIONS_MIN)


def test_the_text_of_a_token_shows_no_key() -> None:
    credentials = "{<ScramMechanism.SCRAM_SHA_256: 1>: ScramCredential(iterations=4096), "
    assert credentials in repr(TOKEN)


def test_the_hmac_is_that_of_apache_kafka() -> None:
    """HMAC-SHA-512 of the token id, with the secret as the key, both in UTF-8; compared with `openssl dgst`."""
    assert token_hmac("secret", "id").hex().startswith("2aab23f380f61ef9a7111a7ca97f6f02")
    assert len(token_hmac("secret", "id")) == 64


@pytest.mark.parametrize("principal", ["User:alice", "User:bob"])
def test_owner_and_renewers_renew_up_to_the_maximum_lifetime(principal: str) -> None:
    decision = decide_renew(TOKENS, KEY, principal, 500, 10_100)
    assert decision.response == 10_600
    token = written(decision)
    assert token is not None
    assert token == replace(TOKEN, expires_ms=10_600)
    assert decide_renew(TOKENS, KEY, principal, 5_000, 10_100).response == 11_000


@pytest.mark.parametrize("principal", ["User:mallory", "User:admin", "alice"])
def test_others_may_neither_renew_nor_expire(principal: str) -> None:
    for decide in (decide_renew, decide_expire):
        with pytest.raises(KafkaError) as raised:
            decide(TOKENS, KEY, principal, 100, 10_000)
        assert code_of(raised) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_expired_token_is_not_renewed_but_may_be_removed() -> None:
    for decide in (decide_renew, decide_expire):
        with pytest.raises(KafkaError) as raised:
            decide(TOKENS, KEY, "User:alice", 100, 10_101)
        assert code_of(raised) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert decide_expire(TOKENS, KEY, "User:alice", -1, 10_101).response == 10_101


def test_a_negative_period_removes_a_token() -> None:
    decision = decide_expire(TOKENS, KEY, "User:bob", -1, 10_050)
    assert decision.response == 10_050
    assert written(decision) is None


def test_a_token_may_expire_earlier_or_later_within_its_maximum_lifetime() -> None:
    sooner = decide_expire(TOKENS, KEY, "User:alice", 5, 10_050)
    assert sooner.response == 10_055
    token = written(sooner)
    assert token is not None
    assert token.expires_ms == 10_055
    assert decide_expire(TOKENS, KEY, "User:alice", 9_999, 10_050).response == 11_000


def test_an_unknown_hmac_is_an_error() -> None:
    for decide in (decide_renew, decide_expire):
        with pytest.raises(KafkaError) as raised:
            decide(TOKENS, token_key(b"other"), "User:alice", 100, 10_000)
        assert code_of(raised) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_only_expired_tokens_are_removed() -> None:
    assert decide_remove_expired(TOKENS, 10_100, 100).changes == ()
    decision = decide_remove_expired(TOKENS, 10_101, 100)
    assert decision.response == 1
    assert written(decision) is None


def test_a_user_has_a_limited_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "TOKENS_PER_OWNER_MAX", 1)
    with pytest.raises(KafkaError) as raised:
        decide_create(TOKENS, "another", TOKEN)
    assert code_of(raised) is ErrorCode.POLICY_VIOLATION
    other = new_token("other", "User:carol", "User:carol", (), 10_000, LIFETIMES, {})
    assert decide_create(TOKENS, "another", other).changes


def test_expired_tokens_do_not_count_for_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "TOKENS_PER_OWNER_MAX", 1)
    later = new_token("later", "User:alice", "User:alice", (), TOKEN.expires_ms + 1, LIFETIMES, {})
    assert decide_create(TOKENS, "another", later).changes


def test_many_expired_tokens_are_removed_in_parts() -> None:
    keys = [token_key(bytes([number])) for number in range(3)]
    many = Table(dict.fromkeys(keys, TOKEN), dict.fromkeys(keys, 7))
    decision = decide_remove_expired(many, 10_101, 2)
    assert decision.response == len(decision.changes) == 2


def test_the_names_of_renewers_have_a_limited_length() -> None:
    for size_bytes, is_allowed in ((RENEWERS_BYTES_MAX, True), (RENEWERS_BYTES_MAX + 1, False)):
        renewers = ("User:a", "User:" + "b" * (size_bytes - 11))
        token = new_token("id", "User:alice", "User:alice", renewers, 0, LIFETIMES, {})
        if is_allowed:
            assert decide_create(Table(), KEY, token).changes
            continue
        with pytest.raises(KafkaError) as raised:
            decide_create(Table(), KEY, token)
        assert code_of(raised) is ErrorCode.INVALID_REQUEST
