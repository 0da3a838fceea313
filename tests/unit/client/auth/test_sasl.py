import pytest

from barnabas.client.auth.sasl import Exchange, NotTheBroker, SaslLogin


def scram(nonce: str = "rOprNGfwEbeRWgbNEkqO") -> Exchange:
    return Exchange(SaslLogin("SCRAM-SHA-256", "user", "pencil"), nonce)


def test_plain_says_name_and_password_in_one_token() -> None:
    exchange = Exchange(SaslLogin("PLAIN", "alice", "secret"))
    assert exchange.first == b"\0alice\0secret"
    assert exchange.answer(b"") is None


def test_scram_speaks_as_in_rfc_7677() -> None:
    exchange = scram()
    assert exchange.first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = exchange.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert exchange.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"r=other,s=QQ==,i=4096", "nonce does not begin"),
        (b"r=mine,s=QQ==,i=4096", "nonce does not begin"),
        (b"r=mineandyours,s=QQ==,i=1", "1 iterations: 4096 to 1000000 are accepted"),
        (b"r=mineandyours,s=QQ==,i=4095", "4095 iterations"),
        (b"r=mineandyours,s=QQ==,i=1000001", "1000001 iterations"),
        (b"hello", "not the first message of a server"),
    ],
)
def test_a_broker_that_cannot_be_one_is_told_nothing(token: bytes, why: str) -> None:
    with pytest.raises(NotTheBroker, match=why):
        scram("mine").answer(token)


def test_each_login_has_a_nonce_of_its_own() -> None:
    login = SaslLogin("SCRAM-SHA-512", "alice", "secret")
    assert Exchange(login).first != Exchange(login).first


def test_a_mechanism_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="'GSSAPI' is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        SaslLogin("GSSAPI", "alice", "secret")


def test_a_login_does_not_print_its_password() -> None:
    assert "secret" not in repr(SaslLogin("PLAIN", "alice", "secret"))
