import pytest

from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.security.sasl.mechanism import LoginRefused
from barnabas.security.sasl.oauthbearer import MESSAGE_BYTES_MAX, InvalidToken, OauthbearerServer, Token


def check(token: str) -> Token:
    if token != "good":
        raise InvalidToken("the token has expired")
    return Token("alice", 60_000)


def test_a_valid_token_logs_in_until_it_expires() -> None:
    server = OauthbearerServer(check)
    assert server.evaluate(b"n,,\x01auth=Bearer good\x01\x01") == b""
    assert (server.user, server.lifetime_ms) == ("alice", 60_000)


@pytest.mark.parametrize(
    "first", [b"n,a=alice,\x01auth=bearer  good\x01\x01", b"n,,\x01auth=Bearer good\x01x=y\x01\x01"]
)
def test_names_and_extensions_may_be_given(first: bytes) -> None:
    server = OauthbearerServer(check)
    server.evaluate(first)
    assert server.user == "alice"


def test_the_client_answers_before_it_learns_that_its_token_is_not_valid() -> None:
    server = OauthbearerServer(check)
    login = SaslLogin("OAUTHBEARER", "alice", token_source=TokenSource(unsecured_user="alice"))
    exchange = Exchange(login, token="bad")
    answer = exchange.answer(server.evaluate(exchange.first))
    assert answer == b"\x01"
    with pytest.raises(LoginRefused) as refused:
        server.evaluate(answer)
    assert str(refused.value) == '{"status":"invalid_token"}'
    assert refused.value.reason == "the token has expired"
    assert server.user is None


def test_hostile_messages_are_refused_after_little_work() -> None:
    """Each `,` and end of a pair would be another position where the pairs may begin."""
    for hostile in (
        b"n,a=,\x01" + b"a=,\x01" * 10_000,
        b"n,a=" + b"x=,\x01" * 12_000,
        b"n,," + b"\x01a=" * 15_000,
    ):
        with pytest.raises(LoginRefused, match="Invalid OAUTHBEARER client first message"):
            OauthbearerServer(check).evaluate(hostile)
    with pytest.raises(LoginRefused):
        OauthbearerServer(check).evaluate(b"n,,\x01auth=Bearer " + b"x" * MESSAGE_BYTES_MAX + b"\x01\x01")


def test_another_name_than_that_of_the_token_is_refused() -> None:
    server = OauthbearerServer(check)
    with pytest.raises(
        LoginRefused, match=r"authorization id \(bob\) that is different from the token's principal"
    ):
        server.evaluate(b"n,a=bob,\x01auth=Bearer good\x01\x01")
    assert server.user is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff\xfe",
        b"n,,\x01\x01",
        b"n,,auth=Bearer good",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01x=y\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
    ],
)
def test_malformed_messages_are_refused(first: bytes) -> None:
    with pytest.raises(LoginRefused, match="Invalid OAUTHBEARER client first message"):
        OauthbearerServer(check).evaluate(first)
