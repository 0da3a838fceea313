"""The client side of SASL mechanisms, without IO."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from barnabas.client.auth.tokens import Tokens, TokenSource
from barnabas.wire import scram
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
PASSWORD_MECHANISMS = (PLAIN, *MECHANISMS_BY_TITLE)
MECHANISMS = (*PASSWORD_MECHANISMS, OAUTHBEARER)
#: For delegation tokens, if nothing says which ones a listener has.
TOKEN_MECHANISM = "SCRAM-SHA-256"

#: With fewer, an impostor of the broker could guess the password from the proof (RFC 7677, section 4).
ITERATIONS_MIN = 4096
#: With more, a malicious broker could keep this client busy.
ITERATIONS_MAX = 1_000_000
_NONCE_BYTES = 20


class NotTheBroker(Exception):
    """The server does not know the password either, or does not follow the mechanism."""


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """Mechanism, user and password of a login. Its representation does not show the password.

    OAUTHBEARER has a source of tokens instead of a password, and `user` is what messages call the client. With a
    delegation token, `user` is its id.
    """

    mechanism: str
    user: str
    password: str = field(default="", repr=False)
    is_delegation_token: bool = False
    token_source: TokenSource | None = None
    tokens: Tokens = field(default_factory=Tokens, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            message = f"SASL mechanism '{self.mechanism}' is not one of {', '.join(MECHANISMS)}"
            raise ValueError(message)
        if (self.mechanism == OAUTHBEARER) != (self.token_source is not None):
            raise ValueError("OAUTHBEARER needs a source of tokens, and only OAUTHBEARER has one")
        if self.is_delegation_token and self.mechanism not in MECHANISMS_BY_TITLE:
            message = f"delegation tokens need {' or '.join(MECHANISMS_BY_TITLE)}, not {self.mechanism}"
            raise ValueError(message)

    @property
    def mechanism_of_tokens(self) -> str:
        """The mechanism for delegation tokens at the same listener: this one if it is SCRAM, as it is enabled."""
        return self.mechanism if self.mechanism in MECHANISMS_BY_TITLE else TOKEN_MECHANISM

    def to_plain(self) -> dict[str, Any]:
        """Return all values, secrets too, as what JSON has."""
        source = None if self.token_source is None else asdict(self.token_source)
        return {
            "mechanism": self.mechanism,
            "user": self.user,
            "password": self.password,
            "is_delegation_token": self.is_delegation_token,
            "token_source": source,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the login of `to_plain`."""
        source = plain["token_source"]
        tokens = None if source is None else TokenSource(**source)
        return cls(plain["mechanism"], plain["user"], plain["password"], plain["is_delegation_token"], tokens)


class Exchange:
    """One login: send `first`, then what `answer` returns until it returns None."""

    def __init__(self, login: SaslLogin, nonce: str | None = None, token: str = "") -> None:
        """:param token: The token of OAUTHBEARER."""
        if login.mechanism == OAUTHBEARER:
            self._scram = None
            self.first = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
            return
        mechanism = MECHANISMS_BY_TITLE.get(login.mechanism)
        nonce = nonce or secrets.token_hex(_NONCE_BYTES)
        self._scram = None if mechanism is None else _Scram(mechanism, login, nonce)
        self.first = self._scram.first if self._scram else f"\0{login.user}\0{login.password}".encode()

    def answer(self, token: bytes) -> bytes | None:
        """Return the token to send after the broker's; None when the login is complete.

        :raises NotTheBroker: If the token cannot be from a broker that knows the user.
        """
        if self._scram is None:
            return b"\x01" if token else None  # a token that is not valid gets an answer before the error
        try:
            return self._scram.answer(token)
        except scram.BadScramMessage as error:
            raise NotTheBroker(str(error)) from error


class _Scram:
    def __init__(self, mechanism: ScramMechanism, login: SaslLogin, nonce: str) -> None:
        self._mechanism = mechanism
        self._login = login
        self._nonce = nonce
        self._bare = scram.client_first(login.user, nonce, names_token=login.is_delegation_token)
        self._expected: bytes | None = None  #: the broker's signature
        self.first = f"{scram.GS2_HEADER}{self._bare}".encode()

    def answer(self, token: bytes) -> bytes | None:
        if self._expected is None:
            return self._prove(token)
        final = scram.parse_server_final(token)
        if final.error is not None or not hmac.compare_digest(final.signature, self._expected):
            raise NotTheBroker(final.error or "the broker could not prove that it knows the password")
        return None

    def _prove(self, token: bytes) -> bytes:
        server = scram.parse_server_first(token)
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise NotTheBroker("the broker's nonce does not begin with this client's")
        if not ITERATIONS_MIN <= server.iterations <= ITERATIONS_MAX:
            bounds = f"{ITERATIONS_MIN} to {ITERATIONS_MAX}"
            message = f"the broker asks for {server.iterations} iterations: {bounds} are accepted"
            raise NotTheBroker(message)
        mechanism = self._mechanism
        bare = scram.client_final_bare(server.nonce)
        messages = (self._bare, token.decode(), bare)
        salted = scram.salted_password(mechanism, self._login.password, server.salt, server.iterations)
        key = scram.client_key(mechanism, salted)
        hidden = scram.signature(mechanism, scram.stored_key(mechanism, key), *messages)
        self._expected = scram.signature(mechanism, scram.server_key(mechanism, salted), *messages)
        return scram.client_final(bare, scram.exclusive_or(key, hidden))
