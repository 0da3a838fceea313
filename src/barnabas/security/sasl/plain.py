"""PLAIN (RFC 4616): name and password in clear text, in one token."""

import hmac
from collections.abc import Callable

from barnabas.security.sasl.mechanism import LoginRefused

#: user name -> password; None for an unknown user
Passwords = Callable[[str], str | None]


class PlainServer:
    """The broker's side of PLAIN."""

    def __init__(self, password_of: Passwords) -> None:
        self._password_of = password_of
        self.user: str | None = None
        self.claimed_user: str | None = None
        self.lifetime_ms: int | None = None
        self.is_delegation_token = False

    def evaluate(self, token: bytes) -> bytes:
        """Check name and password; see `ServerMechanism`."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != 3:
            raise LoginRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
        authorization_id, user, password = parts
        self.claimed_user = user
        if not user:
            raise LoginRefused("Authentication failed: username not specified")
        if not password:
            raise LoginRefused("Authentication failed: password not specified")
        if not self._matches(user, password):
            raise LoginRefused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            message = "Client requested an authorization id that is different from username"
            raise LoginRefused(f"Authentication failed: {message}")
        self.user = user
        return b""

    def _matches(self, user: str, password: str) -> bool:
        """Compare in constant time, for unknown users too, so that timing does not reveal user names."""
        expected = self._password_of(user)
        is_equal = hmac.compare_digest((expected or "").encode(), password.encode())
        return is_equal and expected is not None
