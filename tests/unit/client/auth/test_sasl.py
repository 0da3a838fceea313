import pytest

from barnabas.client.auth.sasl import Exchange, NotTheBroker, SaslLogin


def scram(nonce: str = "rOprNGfwEbeRWgbNEkqO") -> Exchange:
    return Exchange(SaslLogin("SCRAM-SHA-256", "user", "pencil"), nonce)


def test_plain_sends_name_and_password_in_one_token() -> None:
    exchange = Exchange(SaslLogin("PLAIN", "alice", "secret"))
    assert exchange.first == b"\0alice\0secret"
    assert exchange.answer(b"") is None


def test_scram_follows_rfc_7677() -> None:
    exchange = scram()
    assert exchange.first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = exchange.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert exchange.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"r=other,s=QQ==,i=4096", "nonce does not begin with"),
        (b"r=mine,s=QQ==,i=4096", "nonce does not begin with"),
        (b"r=mineandyours,s=QQ==,i=1", "1 iterations: 4096 to 1000000 are accepted"),
        (b"r=mineandyours,s=QQ==,i=4095", "4095 iterations"),
        (b"r=mineandyours,s=QQ==,i=1000001", "1000001 iterations"),
        (b"hello", "not the first message of a server"),
    ],
)
def test_a_broker_that_cannot_prove_itself_gets_nothing(token: bytes, why: str) -> None:
    with pytest.raises(NotTheBroker, match=why):
        scram("mine").answer(token)


def test_each_login_has_its_own_nonce() -> None:
    login = SaslLogin("SCRAM-SHA-512", "alice", "secret")
    assert Exchange(login).first != Exchange(login).first


def test_an_unknown_mechanism_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'GSSAPI' is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        SaslLogin("GSSAPI", "alice", "secret")


def test_a_login_has_no_password_in_its_repr() -> None:
    assert "secret" not in repr(SaslLogin("PLAIN", "alice", "secret"))
