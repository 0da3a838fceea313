"""OAUTHBEARER (RFC 7628, KIP-255): a bearer token that an authorization server has issued."""

import re
from collections.abc import Callable
from typing import NamedTuple

from barnabas.security.sasl.mechanism import LoginRefused

_SEPARATOR = "\x01"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"  # no comma, so that the pairs can begin at one position only
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)+"
_FIRST = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTHORIZATION = re.compile(r"(?i:bearer) +(?P<token>[\w.~+/-]+=*)")
#: Longer messages are refused before they are parsed.
MESSAGE_BYTES_MAX = 64 << 10

#: The answer to a token that is not valid (RFC 7628, section 3.2.2); the client answers with a single byte.
_INVALID_TOKEN = b'{"status":"invalid_token"}'


class InvalidToken(Exception):
    """A token is not valid. The reason is for the log: it may quote claims, but not the token."""


class Token(NamedTuple):
    """What a valid token says."""

    user: str
    lifetime_ms: int  #: from now on


#: Returns what a token says; raises `InvalidToken`.
TokenCheck = Callable[[str], Token]


class OauthbearerServer:
    """The broker's side of OAUTHBEARER."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._failure: str | None = None  #: why the token is not valid; sent with the last message
        self.user: str | None = None
        self.claimed_user: str | None = None
        self.lifetime_ms: int | None = None
        self.is_delegation_token = False

    def evaluate(self, token: bytes) -> bytes:
        """Check the token, or end a failed exchange; see `ServerMechanism`."""
        if self._failure is not None:
            raise LoginRefused(_INVALID_TOKEN.decode(), reason=self._failure)
        authorization_id, credential = self._parse(token)
        try:
            accepted = self._check(credential)
        except InvalidToken as error:
            self._failure = str(error)
            return _INVALID_TOKEN
        self.claimed_user = accepted.user
        if authorization_id not in ("", accepted.user):
            message = (
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                f"different from the token's principal name ({accepted.user})"
            )
            raise LoginRefused(message)
        self.user, self.lifetime_ms = accepted.user, accepted.lifetime_ms
        return b""

    def _parse(self, token: bytes) -> tuple[str, str]:
        match = (
            _FIRST.fullmatch(token.decode("utf-8", "replace")) if len(token) <= MESSAGE_BYTES_MAX else None
        )
        if match is None:
            raise LoginRefused("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
        authorization = _AUTHORIZATION.fullmatch(pairs.get("auth", ""))
        if authorization is None:
            raise LoginRefused("Invalid OAUTHBEARER client first message: 'auth' must have a bearer token")
        return match["authorization_id"] or "", authorization["token"]
