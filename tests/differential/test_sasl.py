"""Authentication, step by step: the same conversation with Apache Kafka and with Barnabas."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.wire import scram
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.scram import ScramMechanism
from differential.sasl import RANDOM, Ask, SaslPair, Say, Step, conversation, sasl_pair
from support.wire import Wire

LIFETIME_MS = 3_600_000
SHA_256, SHA_512 = ScramMechanism


@pytest.fixture(scope="module")
def pair() -> Iterator[SaslPair]:
    with tempfile.TemporaryDirectory(prefix="differential-sasl-") as home, sasl_pair(Path(home)) as running:
        for port in running.plaintext.values():
            with Wire(port) as wire:
                add(wire, "carol", SHA_256, 4096)
                add(wire, "carol", SHA_512, 8192)
        yield running


@pytest.fixture(scope="module")
def renewing() -> Iterator[SaslPair]:
    """Run brokers with connections.max.reauth.ms."""
    more = {"connections_max_reauth_ms": str(LIFETIME_MS)}
    with (
        tempfile.TemporaryDirectory(prefix="differential-sasl-") as home,
        sasl_pair(Path(home), **more) as running,
    ):
        yield running


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = scram.salted_password(
        SHA_512 if mechanism == 2 else SHA_256, f"{user}-secret", b"salt", max(iterations, 1)
    )
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def add(wire: Wire, user: str, mechanism: ScramMechanism, iterations: int) -> None:
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion(user, mechanism, iterations)])
    [result] = wire.ask(request, 0).results
    assert result.error_code == 0


def versions(version: int = 3) -> Ask:
    return Ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), version)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Ask:
    return Ask(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(token: bytes, version: int = 2) -> Ask:
    return Ask(SaslAuthenticateRequest(auth_bytes=token), version)


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


ALICE = plain("alice", "alice-secret")
BOB = plain("bob", "bob-secret")
CLUSTER = Ask(DescribeClusterRequest(), 0)
NAMES = Ask(MetadataRequest(topics=[]), 9)

CONVERSATIONS: dict[str, Sequence[Step]] = {
    "versions, handshake, token": [versions(), handshake(), authenticate(ALICE), CLUSTER],
    "no versions": [handshake(), authenticate(ALICE), CLUSTER],
    "v0 of everything": [versions(0), handshake(version=0), Say(ALICE), CLUSTER],
    "authenticate v0": [handshake(), authenticate(ALICE, 0), CLUSTER],
    "authenticate v1": [handshake(), authenticate(ALICE, 1), CLUSTER],
    "bare tokens, wrong password": [handshake(version=0), Say(plain("alice", "wrong"))],
    "bare tokens, no token": [handshake(version=0), Say(b"hello")],
    "bare tokens, a request instead": [handshake(version=0), authenticate(ALICE)],
    "wrong password": [handshake(), authenticate(plain("alice", "wrong")), CLUSTER],
    "unknown user": [handshake(), authenticate(plain("nobody", "wrong"))],
    "wrong password, v0": [handshake(), authenticate(plain("alice", "wrong"), 0)],
    "no name": [handshake(), authenticate(plain("", "x"))],
    "no password": [handshake(), authenticate(plain("alice", ""))],
    "same authorization id": [handshake(), authenticate(plain("alice", "alice-secret", "alice")), CLUSTER],
    "other authorization id": [handshake(), authenticate(plain("alice", "alice-secret", "bob"))],
    "other authorization id, wrong password": [handshake(), authenticate(plain("alice", "wrong", "bob"))],
    "no token": [handshake(), authenticate(b"")],
    "two parts": [handshake(), authenticate(b"alice\0alice-secret")],
    "four parts": [handshake(), authenticate(ALICE + b"\0")],
    "not UTF-8": [handshake(), authenticate(b"\0alice\0\xff\xfe")],
    "unknown mechanism": [handshake("GSSAPI"), authenticate(ALICE)],
    "unknown mechanism, v0": [handshake("OAUTHBEARER", 0)],
    "no mechanism": [handshake("")],
    "mechanism in small letters": [handshake("plain")],
    "token before handshake": [authenticate(ALICE)],
    "token after versions": [versions(), authenticate(ALICE)],
    "bare token first": [Say(ALICE)],
    "nothing in a frame": [Say(b"")],
    "request first": [NAMES],
    "request after versions": [versions(), CLUSTER],
    "versions twice": [versions(), versions()],
    "versions of an unknown version": [
        Ask(ApiVersionsRequest(), 3),
        handshake(),
        authenticate(ALICE),
        CLUSTER,
    ],
    "handshake twice": [handshake(), handshake()],
    "versions after handshake": [handshake(), versions()],
    "versions v0 after handshake": [handshake(), versions(0)],
    "metadata after handshake": [handshake(), NAMES],
    "a cluster's description after handshake": [handshake(), CLUSTER],
    "producer id after handshake": [handshake(), Ask(InitProducerIdRequest(None, 1000), 4)],
    "topics after handshake": [handshake(), Ask(CreateTopicsRequest(), 5)],
    "handshake after login": [handshake(), authenticate(ALICE), handshake(), CLUSTER],
    "handshake v0 after login": [handshake(), authenticate(ALICE), handshake(version=0), CLUSTER],
    "unknown mechanism after login": [handshake(), authenticate(ALICE), handshake("GSSAPI"), CLUSTER],
    "token after login": [handshake(), authenticate(ALICE), authenticate(ALICE), CLUSTER],
    "token v0 after login": [handshake(), authenticate(ALICE), authenticate(ALICE, 0), CLUSTER],
    "versions after login": [handshake(), authenticate(ALICE), versions(), versions(), CLUSTER],
    "scram: no first message": [handshake("SCRAM-SHA-256"), authenticate(b"hello")],
    "scram: an empty first message": [handshake("SCRAM-SHA-256"), authenticate(b"")],
    "scram: acts for another": [handshake("SCRAM-SHA-512"), authenticate(b"n,a=bob,n=carol,r=x")],
    "scram: channel binding": [handshake("SCRAM-SHA-256"), authenticate(b"y,,n=carol,r=x")],
    "scram: a bad name": [handshake("SCRAM-SHA-256"), authenticate(b"n,,n=car=ol,r=x")],
}


def both(
    ports: dict[str, int], steps: Callable[[], Sequence[Step]], mask: Callable[[bytes], bytes] = bytes
) -> None:
    """Hold the same conversation with both; `steps` builds it for each."""
    found = {name: conversation(port, steps(), mask) for name, port in ports.items()}
    assert found["barnabas"] == found["kafka"]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_are_the_same_as_in_kafka(pair: SaslPair, name: str) -> None:
    both(pair.clients, lambda: CONVERSATIONS[name])


@pytest.mark.parametrize("name", ["handshake", "token", "token v0"])
def test_authentication_on_a_listener_without_sasl_fails_as_in_kafka(pair: SaslPair, name: str) -> None:
    step = {"handshake": handshake(), "token": authenticate(ALICE), "token v0": authenticate(ALICE, 0)}[name]
    both(pair.plaintext, lambda: [step, CLUSTER, handshake(version=0), CLUSTER])


# SCRAM


def scram_steps(mechanism: str, user: str, password: str, *, bare: bool = False) -> Sequence[Step]:
    exchange = Exchange(SaslLogin(mechanism, user, password), "nonce")

    def wrap(token: bytes) -> Ask | Say:
        return Say(token) if bare else authenticate(token)

    return [
        handshake(mechanism, 0 if bare else 1),
        wrap(exchange.first),
        lambda token: wrap((exchange.answer(token) if token else None) or b""),
        CLUSTER,
    ]


def shape(token: bytes) -> bytes:
    """Return a token without the parts that are different each time."""
    if token.startswith(b"v="):
        return RANDOM
    _, _, rest = token.partition(b",")
    return rest


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_exchanges_are_the_same_as_in_kafka(pair: SaslPair, mechanism: str, bare: bool) -> None:
    both(pair.clients, lambda: scram_steps(mechanism, "carol", "carol-secret", bare=bare), shape)
    both(pair.clients, lambda: scram_steps(mechanism, "carol", "wrong", bare=bare), shape)


def test_an_unknown_scram_user_finally_gets_the_same_error_as_in_kafka(pair: SaslPair) -> None:
    """Kafka fails the first message; Barnabas, on purpose, the proof."""
    last = []
    for port in pair.clients.values():
        answers = conversation(port, scram_steps("SCRAM-SHA-256", "nobody", "x"), shape)
        last.append(next(each for each in answers[1:] if isinstance(each, dict) and each["error_code"]))
    assert last[0] == last[1]


# Credentials

ALTERATIONS: dict[str, AlterUserScramCredentialsRequest] = {
    "nothing": AlterUserScramCredentialsRequest(),
    "two users": AlterUserScramCredentialsRequest(upsertions=[upsertion("a"), upsertion("b", 2, 16_384)]),
    "again": AlterUserScramCredentialsRequest(upsertions=[upsertion("a", 1, 5000)]),
    "by another mechanism": AlterUserScramCredentialsRequest(upsertions=[upsertion("a", 2)]),
    "too few iterations": AlterUserScramCredentialsRequest(upsertions=[upsertion("c", 1, 4095)]),
    "too many iterations": AlterUserScramCredentialsRequest(upsertions=[upsertion("c", 1, 16_385)]),
    "negative iterations": AlterUserScramCredentialsRequest(upsertions=[upsertion("c", 1, -1)]),
    "no name": AlterUserScramCredentialsRequest(upsertions=[upsertion("")]),
    "no name to delete": AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("", 1)]),
    "unknown mechanism": AlterUserScramCredentialsRequest(upsertions=[upsertion("c", 3)]),
    "mechanism 0": AlterUserScramCredentialsRequest(upsertions=[upsertion("c", 0, 1)]),
    "unknown mechanism to delete": AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion("a", 7)]
    ),
    "no such user": AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("nobody", 1)]),
    "no such credential": AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("b", 1)]),
    "twice": AlterUserScramCredentialsRequest(upsertions=[upsertion("c"), upsertion("c")]),
    "twice by two mechanisms": AlterUserScramCredentialsRequest(
        upsertions=[upsertion("c"), upsertion("c", 2)]
    ),
    "set and deleted": AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion("a", 1)], upsertions=[upsertion("a", 2)]
    ),
    "fault, then again": AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion("nobody", 1)], upsertions=[upsertion("nobody")]
    ),
    "good beside bad": AlterUserScramCredentialsRequest(upsertions=[upsertion("bad", 1, 1), upsertion("d")]),
    "no salt": AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion("e", 1, 4096, b"", b"x")]
    ),
    "deleted": AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion("a", 1), ScramCredentialDeletion("b", 2)]
    ),
}
DESCRIPTIONS: list[list[str] | None] = [None, [], ["a"], ["a", "a"], ["nobody", "b", "b", "d"], [""]]


#: Time for Kafka's broker to show its controller's changes.
VISIBLE_S = 10.0


def test_credentials_are_altered_and_described_as_in_kafka(pair: SaslPair) -> None:
    with Wire(pair.plaintext["kafka"]) as kafka, Wire(pair.plaintext["barnabas"]) as barnabas:
        for name, request in ALTERATIONS.items():
            assert altered(barnabas, request) == altered(kafka, request), name
            expected = described(barnabas)
            deadline_s = time.monotonic() + VISIBLE_S
            while (found := described(kafka)) != expected and time.monotonic() < deadline_s:
                time.sleep(0.02)
            assert found == expected, name


def altered(wire: Wire, request: AlterUserScramCredentialsRequest) -> list[tuple[object, ...]]:
    results = wire.ask(request, 0).results
    return sorted((each.user, each.error_code, bool(each.error_message)) for each in results)


def described(wire: Wire) -> list[tuple[object, ...]]:
    """Return the responses to all of `DESCRIPTIONS`."""
    responses: list[tuple[object, ...]] = []
    for users in DESCRIPTIONS:
        requests = None if users is None else [UserName(name=user) for user in users]
        response = wire.ask(DescribeUserScramCredentialsRequest(users=requests), 0)
        results = [
            (
                each.user,
                each.error_code,
                bool(each.error_message),
                sorted((info.mechanism, info.iterations) for info in each.credential_infos),
            )
            for each in response.results
        ]
        responses.append((users, response.error_code, sorted(results)))
    return responses


# Session lifetimes

RENEWALS: dict[str, Sequence[Step]] = {
    "renewed": [handshake(), authenticate(ALICE), CLUSTER, handshake(), authenticate(ALICE), CLUSTER],
    "by bare tokens": [handshake(), authenticate(ALICE), handshake(version=0), Say(ALICE), CLUSTER],
    "v0 without an error message": [handshake(), authenticate(ALICE, 0), CLUSTER],
    "too soon": [handshake(), authenticate(ALICE), handshake(), authenticate(ALICE), handshake(), CLUSTER],
    "other user": [handshake(), authenticate(ALICE), handshake(), authenticate(BOB)],
    "other mechanism": [handshake(), authenticate(ALICE), handshake("SCRAM-SHA-256"), authenticate(ALICE)],
    "wrong password": [handshake(), authenticate(ALICE), handshake(), authenticate(plain("alice", "wrong"))],
    "no token": [handshake(), authenticate(ALICE), handshake(), authenticate(b"hello")],
    "a request instead of a token": [handshake(), authenticate(ALICE), handshake(), NAMES],
    "versions instead of a token": [handshake(), authenticate(ALICE), handshake(), versions()],
    "token without handshake": [handshake(), authenticate(ALICE), authenticate(ALICE), CLUSTER],
}


@pytest.mark.parametrize("name", RENEWALS)
def test_reauthentication_is_the_same_as_in_kafka(renewing: SaslPair, name: str) -> None:
    both(renewing.clients, lambda: RENEWALS[name])
