import pytest

from barnabas.security.sasl.mechanism import LoginRefused
from barnabas.security.sasl.plain import PlainServer

PASSWORDS = {"alice": "secret", "jürgen": "größe", "empty": ""}


def server() -> PlainServer:
    return PlainServer(PASSWORDS.get)


@pytest.mark.parametrize("token", ["\0alice\0secret", "alice\0alice\0secret", "\0jürgen\0größe"])
def test_name_and_password_log_in(token: str) -> None:
    plain = server()
    assert plain.evaluate(token.encode()) == b""
    assert plain.user == token.split("\0")[1]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("\0\0secret", "username not specified"),
        ("\0alice\0", "password not specified"),
        ("\0empty\0", "password not specified"),
        ("\0alice\0wrong", "Invalid username or password"),
        ("\0nobody\0secret", "Invalid username or password"),
        ("bob\0alice\0secret", "Client requested an authorization id that is different from username"),
        ("bob\0alice\0wrong", "Invalid username or password"),
    ],
)
def test_an_error_has_kafkas_message(token: str, why: str) -> None:
    plain = server()
    with pytest.raises(LoginRefused, match=f"^Authentication failed: {why}$"):
        plain.evaluate(token.encode())
    assert plain.user is None


@pytest.mark.parametrize(
    ("token", "count"),
    [
        (b"", 1),
        (b"alice", 1),
        (b"alice\0secret", 2),
        (b"\0alice\0secret\0", 4),
        (b"\xff\0", 2),
        (bytes(9), 4),
    ],
)
def test_an_invalid_token_is_reported(token: bytes, count: int) -> None:
    with pytest.raises(LoginRefused, match=f"^Invalid SASL/PLAIN response: expected 3 tokens, got {count}$"):
        server().evaluate(token)
