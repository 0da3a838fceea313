import random
from collections.abc import Callable
from functools import partial

import pytest

from barnabas.client.auth.sasl import Exchange, NotTheBroker, SaslLogin
from barnabas.metadata.scram import ScramCredential
from barnabas.security.sasl.mechanism import BadCredentials, LoginRefused
from barnabas.security.sasl.scram import ScramServer, TokenCredential
from barnabas.security.sasl.stand_ins import StandIns
from barnabas.wire import scram
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism

SALT = b"0123456789abcdef"


def stand_in_for(mechanism: ScramMechanism) -> Callable[[str], ScramCredential]:
    return partial(StandIns(b"secret of the cluster", dict).of, mechanism)


def server(
    title: str = "SCRAM-SHA-256", seed: int = 1, users: tuple[str, ...] = ("alice", "a,b=c")
) -> ScramServer:
    mechanism = MECHANISMS_BY_TITLE[title]
    credentials = {user: ScramCredential.of_password(mechanism, f"{user}'s", SALT) for user in users}
    tokens = {"token": TokenCredential(ScramCredential.of_password(mechanism, "hmac", SALT), "alice", 1_000)}
    return ScramServer(mechanism, credentials.get, tokens.get, stand_in_for(mechanism), random.Random(seed))


def log_in(machine: ScramServer, login: SaslLogin) -> None:
    """Run both state machines against each other."""
    exchange = Exchange(login, "client-nonce")
    final = exchange.answer(machine.evaluate(exchange.first))
    assert final is not None
    assert exchange.answer(machine.evaluate(final)) is None


@pytest.mark.parametrize("title", MECHANISMS_BY_TITLE)
@pytest.mark.parametrize("user", ["alice", "a,b=c"])
def test_the_right_password_logs_in(title: str, user: str) -> None:
    machine = server(title)
    log_in(machine, SaslLogin(title, user, f"{user}'s"))
    assert machine.user == user


def test_the_exchange_equals_that_of_the_rfc() -> None:
    """RFC 7677's exchange with its nonce; the broker's part of the nonce is ours."""
    salt = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
    mechanism = ScramMechanism.SCRAM_SHA_256
    credential = ScramCredential.of_password(mechanism, "pencil", salt)

    class Random(random.Random):
        def randbytes(self, n: int) -> bytes:
            return bytes(n)

    machine = ScramServer(
        mechanism, lambda user: credential, lambda token_id: None, stand_in_for(mechanism), Random()
    )
    first = machine.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == f"r=rOprNGfwEbeRWgbNEkqO{'0' * 40},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_fail_alike(user: str) -> None:
    machine = server()
    with pytest.raises(BadCredentials, match=f"^no valid proof for user '{user}'$"):
        log_in(machine, SaslLogin("SCRAM-SHA-256", user, "wrong"))
    assert machine.user is None


def test_an_unknown_user_always_has_the_same_salt_different_from_others() -> None:
    def salt_of(user: str, seed: int) -> bytes:
        answer = server(seed=seed).evaluate(Exchange(SaslLogin("SCRAM-SHA-256", user, ""), "n").first)
        return scram.parse_server_first(answer).salt

    assert salt_of("nobody", 1) == salt_of("nobody", 2) != salt_of("somebody", 1)
    assert len(salt_of("nobody", 1)) == len(SALT)


def test_the_key_of_an_unknown_user_proves_nothing() -> None:
    """The stand-in for an unknown user must not be a valid credential of anyone."""
    machine = server()
    first = machine.evaluate(b"n,,n=nobody,r=x")
    bare = scram.client_final_bare(scram.parse_server_first(first).nonce)
    for key in (bytes(32), b"\xff" * 32):
        with pytest.raises(BadCredentials):
            machine.evaluate(scram.client_final(bare, key))


@pytest.mark.parametrize("title", MECHANISMS_BY_TITLE)
def test_a_delegation_token_logs_in_its_owner_until_it_expires(title: str) -> None:
    machine = server(title)
    log_in(machine, SaslLogin(title, "token", "hmac", is_delegation_token=True))
    assert (machine.user, machine.lifetime_ms, machine.is_delegation_token) == ("alice", 1_000, True)
    assert machine.claimed_user == "token"


@pytest.mark.parametrize(
    ("token", "password"), [("token", "wrong"), ("unknown", "hmac"), ("alice", "alice's")]
)
def test_other_delegation_tokens_fail_alike(token: str, password: str) -> None:
    machine = server()
    with pytest.raises(BadCredentials, match=f"^no valid proof for delegation token '{token}'$"):
        log_in(machine, SaslLogin("SCRAM-SHA-256", token, password, is_delegation_token=True))
    assert machine.user is None


def server_with_token(*answers: TokenCredential | None) -> ScramServer:
    """Return a server whose token changes with each look at it."""
    mechanism, remaining = ScramMechanism.SCRAM_SHA_256, iter(answers)
    return ScramServer(
        mechanism,
        lambda user: None,
        lambda token_id: next(remaining),
        stand_in_for(mechanism),
        random.Random(1),
    )


def test_the_end_of_a_token_during_the_login_counts() -> None:
    credential = ScramCredential.of_password(ScramMechanism.SCRAM_SHA_256, "hmac", SALT)
    login = SaslLogin("SCRAM-SHA-256", "token", "hmac", is_delegation_token=True)
    begun = TokenCredential(credential, "alice", 1_000)
    slow = server_with_token(begun, TokenCredential(credential, "alice", 400))
    log_in(slow, login)
    assert slow.lifetime_ms == 400
    removed = server_with_token(begun, None)
    with pytest.raises(BadCredentials, match=r"^no valid proof for delegation token 'token'$"):
        log_in(removed, login)
    assert removed.user is None


def test_nonces_are_extended_by_the_broker() -> None:
    nonces = {server(seed=seed).evaluate(b"n,,n=alice,r=x") for seed in range(10)}
    assert len(nonces) == 10


@pytest.mark.parametrize("first", [b"n,a=bob,n=alice,r=x", b"n,a=bob,n=token,r=x,tokenauth=true"])
def test_acting_for_another_user_is_rejected(first: bytes) -> None:
    with pytest.raises(LoginRefused, match="an authorization id that is different from username"):
        server().evaluate(first)
    assert server().evaluate(b"n,a=token,n=token,r=x,tokenauth=true")
    assert server().evaluate(b"n,a=alice,n=alice,r=x")


def test_an_invalid_token_fails() -> None:
    with pytest.raises(BadCredentials, match="not the first message"):
        server().evaluate(b"hello")
    machine = server()
    machine.evaluate(b"n,,n=alice,r=x")
    with pytest.raises(BadCredentials, match="not the last message"):
        machine.evaluate(b"n,,n=alice,r=x")


def test_a_proof_for_another_nonce_or_of_another_length_fails() -> None:
    machine = server()
    machine.evaluate(b"n,,n=alice,r=x")
    with pytest.raises(BadCredentials, match="nonce"):
        machine.evaluate(b"c=biws,r=x,p=QQ==")
    machine = server()
    nonce = scram.parse_server_first(machine.evaluate(b"n,,n=alice,r=x")).nonce
    with pytest.raises(BadCredentials, match="no valid proof"):
        machine.evaluate(f"c=biws,r={nonce},p=QQ==".encode())


def test_a_client_detects_a_server_without_the_password() -> None:
    exchange = Exchange(SaslLogin("SCRAM-SHA-256", "alice", "alice's"), "client-nonce")
    assert exchange.answer(server().evaluate(exchange.first))
    with pytest.raises(NotTheBroker, match="could not prove"):
        exchange.answer(scram.server_final(bytes(32)))
