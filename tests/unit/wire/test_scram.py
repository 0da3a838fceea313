import base64

import pytest

from barnabas.wire import scram
from barnabas.wire.scram import BadScramMessage, ScramMechanism

# The exchange in section 3 of RFC 7677.
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_256, SHA_512 = ScramMechanism


def test_mechanisms_have_kafkas_numbers_and_names() -> None:
    assert [(each.value, each.title, each.hash_name, each.key_bytes) for each in ScramMechanism] == [
        (1, "SCRAM-SHA-256", "sha256", 32),
        (2, "SCRAM-SHA-512", "sha512", 64),
    ]


def test_keys_and_proofs_equal_those_of_the_rfc() -> None:
    server = scram.parse_server_first(SERVER_FIRST.encode())
    assert str(server) == SERVER_FIRST
    bare = scram.client_final_bare(server.nonce)
    messages = (scram.client_first("user", CLIENT_NONCE), SERVER_FIRST, bare)
    salted = scram.salted_password(SHA_256, "pencil", server.salt, server.iterations)
    key = scram.client_key(SHA_256, salted)
    signature = scram.signature(SHA_256, scram.stored_key(SHA_256, key), *messages)
    proof = scram.exclusive_or(key, signature)
    assert scram.client_final(bare, proof) == f"c=biws,r={NONCE},p={PROOF}".encode()
    answer = scram.signature(SHA_256, scram.server_key(SHA_256, salted), *messages)
    assert scram.server_final(answer) == f"v={SIGNATURE}".encode()


def test_a_clients_first_message_has_its_name() -> None:
    first = scram.parse_client_first(f"n,,n=user,r={CLIENT_NONCE}".encode())
    assert (first.name, first.authorization_id, first.nonce) == ("user", "", CLIENT_NONCE)
    assert first.bare == f"n=user,r={CLIENT_NONCE}"


@pytest.mark.parametrize("name", ["a,b", "a=b", "=2C", "a=3Db", "jürgen", "名", " "])
def test_any_name_round_trips(name: str) -> None:
    message = scram.GS2_HEADER + scram.client_first(name, "x")
    assert scram.parse_client_first(message.encode()).name == name


def test_a_client_may_have_an_authorization_id_and_extensions() -> None:
    first = scram.parse_client_first(b"n,a=other,n=user,r=x,tokenauth=true")
    assert (first.authorization_id, first.extensions) == ("other", ",tokenauth=true")
    assert first.bare == "n=user,r=x,tokenauth=true"


@pytest.mark.parametrize(
    ("extensions", "names_token"),
    [("", False), (",tokenauth=true", True), (",a=b,TokenAuth=True", True), (",tokenauth=false", False)],
)
def test_a_name_may_be_that_of_a_delegation_token(extensions: str, names_token: bool) -> None:
    assert scram.parse_client_first(f"n,,n=user,r=x{extensions}".encode()).names_token is names_token


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n=user,r=x",  # no channel binding flag
        b"y,,n=user,r=x",  # would bind the channel if the server supported it
        b"p=tls-unique,,n=user,r=x",
        b"n,,m=must,n=user,r=x",  # requires an extension
        b"n,,n=,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=user,r=",
        b"n,,n=user,r=\xc3\xa9",
        b"n,,n=user",
        b"n,,n=\xff,r=x",
        b"n,,n=us\0er,r=x",
        b"n,,n=user,r=x,",
    ],
)
def test_other_first_messages_of_a_client_are_rejected(message: bytes) -> None:
    with pytest.raises(BadScramMessage, match="not the first message of a client"):
        scram.parse_client_first(message)


@pytest.mark.parametrize(
    "message", [b"r=x,s=,i=1", b"r=x,s=QQ==,i=0", b"r=x,s=QQ==,i=-1", b"s=QQ==,i=1", b"e=no"]
)
def test_other_first_messages_of_a_server_are_rejected(message: bytes) -> None:
    with pytest.raises(BadScramMessage, match="not the first message of a server"):
        scram.parse_server_first(message)


def test_a_final_message_is_signed_without_its_proof() -> None:
    final = scram.parse_client_final(f"c=biws,r={NONCE},p={PROOF}".encode())
    assert final == (NONCE, base64.b64decode(PROOF), f"c=biws,r={NONCE}")


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=x", b"c=biws,r=x,p=", b"c=,r=x,p=QQ==", b"c=biws,r=x,p=QQ==,y=z"]
)
def test_other_final_messages_are_rejected(message: bytes) -> None:
    with pytest.raises(BadScramMessage, match="not the last message of a client"):
        scram.parse_client_final(message)


def test_truncated_base64_is_rejected() -> None:
    with pytest.raises(BadScramMessage, match="not base64"):
        scram.parse_client_final(b"c=biws,r=x,p=QQQQQ")


def test_a_server_ends_with_a_signature_or_an_error() -> None:
    assert scram.parse_server_final(f"v={SIGNATURE}".encode()) == (base64.b64decode(SIGNATURE), None)
    assert scram.parse_server_final(b"e=other-error") == (b"", "other-error")
    with pytest.raises(BadScramMessage, match="not the last message of a server"):
        scram.parse_server_final(b"x=y")


def test_the_longer_hash_has_longer_keys() -> None:
    salted = scram.salted_password(SHA_512, "pencil", b"salt", 4096)
    assert len(scram.server_key(SHA_512, salted)) == 64
