"""A connection's authentication (KIP-43, KIP-152) and re-authentication (KIP-368): which requests are allowed in which
state.

The order is Apache Kafka's (`SaslServerAuthenticator`): ApiVersions at most once, SaslHandshake, then
tokens, in SaslAuthenticate or, after SaslHandshake v0, as bare frames.
"""

import enum
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from barnabas.security.sasl.mechanism import BadCredentials, LoginRefused, ServerMechanism
from barnabas.wire.errors import ErrorCode, KafkaError

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36

#: The shortest time between two authentications of a connection.
RENEWAL_INTERVAL_MS_MIN = 1000


class SaslState(enum.Enum):
    """The state of an authentication."""

    BEGIN = "ApiVersions or SaslHandshake is expected"
    HANDSHAKE = "SaslHandshake is expected"
    AUTHENTICATE = "a SASL token is expected"
    COMPLETE = "the client is known"
    OTHER_MECHANISM = "a renewal by another mechanism, which ends at the next token"
    FAILED = "the connection closes"


_State = SaslState
TRANSITIONS: Mapping[SaslState, frozenset[SaslState]] = {
    _State.BEGIN: frozenset({_State.HANDSHAKE, _State.AUTHENTICATE, _State.FAILED}),
    _State.HANDSHAKE: frozenset({_State.AUTHENTICATE, _State.OTHER_MECHANISM, _State.FAILED}),
    _State.AUTHENTICATE: frozenset({_State.COMPLETE, _State.FAILED}),
    _State.COMPLETE: frozenset({_State.HANDSHAKE, _State.FAILED}),
    _State.OTHER_MECHANISM: frozenset({_State.FAILED}),
    _State.FAILED: frozenset(),
}


class LoginOutcome(enum.StrEnum):
    """The outcome of an authentication, for metrics and the log."""

    SUCCEEDED = "succeeded"
    RENEWED = "renewed"
    FAILED = "failed"
    EXPIRED = "expired"


class LoginEvent(NamedTuple):
    """An outcome with its details, for metrics and the log."""

    mechanism: str  #: empty before one was chosen
    outcome: LoginOutcome
    user: str  #: as the client claims if the authentication failed; empty if unknown
    reason: str  #: of the failure; empty otherwise
    address: str
    listener: str


Observe: TypeAlias = Callable[[LoginEvent], None]

#: The mechanisms of a listener, and how to begin an exchange with each.
Mechanisms: TypeAlias = Mapping[str, Callable[[], ServerMechanism]]


class SaslAuthenticationError(Exception):
    """The connection must be closed without a response; after a delay if the credentials were wrong."""

    def __init__(self, reason: str, *, is_immediate: bool) -> None:
        super().__init__(reason)
        self.is_immediate = is_immediate


class Authenticator:
    """One connection's authentication. It gets every frame until `needs_no_more_checks`."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        session_ms_max: Mapping[str, int],
        now_ms: Callable[[], int],
        observe: Observe,
        address: str = "",
        listener: str = "",
        *,
        has_principal_builder: bool = False,
    ) -> None:
        """:param session_ms_max: The session lifetime of each mechanism; 0 for no limit.
        :param has_principal_builder: An authenticated user still needs a principal: `set_principal` or `refuse`.
        """
        self._mechanisms = mechanisms
        self._session_ms_max = session_ms_max
        self._now_ms = now_ms
        self._observe = observe
        self._address = address
        self._listener = listener
        self._has_principal_builder = has_principal_builder
        self._unreported: LoginOutcome | None = None  #: of a user who still needs a principal
        self._exchange: ServerMechanism | None = None
        self._takes_bare_tokens = False
        self._session_ms = 0  #: lifetime of the session; 0 for no limit
        self._expires_ms: int | None = None  #: end of the session, on the monotonic clock
        self._renewed_ms: int | None = None  #: start of the last re-authentication
        self.state = SaslState.BEGIN
        self.mechanism: str | None = None
        self.user: str | None = None  #: the last authenticated user
        self.principal: str | None = (
            None  #: of a principal builder; None without one, or if it was not asked yet
        )
        self.is_delegation_token = False  #: whether that user logged in with a delegation token
        self.failure = ""  #: why it failed; for the log

    @property
    def is_authenticated(self) -> bool:
        return self.state is SaslState.COMPLETE

    @property
    def needs_no_more_checks(self) -> bool:
        """Whether the client has authenticated for good: it has its principal, and its session has no end."""
        return self.is_authenticated and not self.needs_principal and self._expires_ms is None

    @property
    def needs_principal(self) -> bool:
        """Whether the principal builder must be asked about the user who has authenticated."""
        return self._unreported is not None

    @property
    def _is_renewal(self) -> bool:
        return self.user is not None

    def set_principal(self, principal: str) -> None:
        """Set the principal of a principal builder.

        :raises LoginRefused: If it was another one before a re-authentication.
        """
        if self.principal is not None and self.principal != principal:
            message = f"Cannot change principals during re-authentication from {self.principal}: {principal}"
            self.refuse(message)
            raise LoginRefused(message)
        self.principal = principal
        if self._unreported is not None:
            assert self.user is not None
            self._notify(self._unreported, self.user)
            self._unreported = None

    def refuse(self, why: str) -> None:
        """Refuse a user who is authenticated, but has no principal."""
        self._fail(why)

    # Frames

    def receive(self, frame: memoryview) -> bytes | None:
        """Return the response token for a bare token; None if the frame is a request, to be handled as such.

        :raises SaslAuthenticationError: When the frame is not allowed now.
        """
        if self.state is SaslState.AUTHENTICATE and self._takes_bare_tokens:
            return self._receive_bare(bytes(frame))
        api_key = int.from_bytes(frame[:2], "big")
        if self.state is SaslState.COMPLETE:
            self._receive_in_session(api_key)
        elif self.state is SaslState.OTHER_MECHANISM:
            self._fail(f"a login by {self.mechanism} cannot be renewed by another mechanism")
            raise SaslAuthenticationError(self.failure, is_immediate=False)
        elif self.state is not SaslState.AUTHENTICATE:
            self._receive_in_handshake(api_key)
        return None

    def _receive_bare(self, token: bytes) -> bytes:
        try:
            return self._evaluate(token)
        except LoginRefused as error:
            raise SaslAuthenticationError(str(error), is_immediate=False) from error
        except BadCredentials as error:
            raise SaslAuthenticationError(str(error), is_immediate=False) from error

    def _receive_in_session(self, api_key: int) -> None:
        if self._expires_ms is None:
            return
        now_ms = self._now_ms()
        too_soon = self._renewed_ms is not None and now_ms - self._renewed_ms < RENEWAL_INTERVAL_MS_MIN
        if api_key == SASL_HANDSHAKE and not too_soon:
            self._renewed_ms = now_ms
            self._go(SaslState.HANDSHAKE)
        elif now_ms > self._expires_ms:
            self._fail("the session has expired and was not renewed", LoginOutcome.EXPIRED)
            raise SaslAuthenticationError(self.failure, is_immediate=True)

    def _receive_in_handshake(self, api_key: int) -> None:
        due = (SASL_HANDSHAKE, API_VERSIONS) if self.state is SaslState.BEGIN else (SASL_HANDSHAKE,)
        if api_key not in due:
            self._fail(f"received api key {api_key}, but {self.state.value}")
            raise SaslAuthenticationError(self.failure, is_immediate=True)

    # Requests

    def admit(self, api_key: int, api_name: str) -> None:
        """Check that a well-formed request is allowed now.

        :raises KafkaError: ILLEGAL_SASL_STATE when a token is expected instead.
        """
        if self.state is SaslState.AUTHENTICATE and api_key != SASL_AUTHENTICATE:
            self._fail(f"received api key {api_key}, but {self.state.value}")
            name = re.sub("(?<!^)([A-Z])", r"_\1", api_name).upper()  # the name as Kafka spells it
            message = f"Unexpected Kafka request of type {name} during SASL authentication."
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)

    def on_api_versions_answered(self) -> None:
        """Record a successful ApiVersions response; a second request is refused."""
        if self.state is SaslState.BEGIN:
            self._go(SaslState.HANDSHAKE)

    def handshake(self, mechanism: str, version: int) -> ErrorCode:
        """Choose a mechanism: NONE, ILLEGAL_SASL_STATE after the authentication, or UNSUPPORTED_SASL_MECHANISM."""
        if self.state is SaslState.COMPLETE:
            return ErrorCode.ILLEGAL_SASL_STATE
        if mechanism not in self._mechanisms:
            self._fail(f"SASL mechanism {mechanism!r} is not offered")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self._is_renewal and mechanism != self.mechanism:
            self._go(SaslState.OTHER_MECHANISM)
        else:
            self.mechanism = mechanism
            self._exchange = self._mechanisms[mechanism]()
            self._takes_bare_tokens = version == 0
            self._go(SaslState.AUTHENTICATE)
        return ErrorCode.NONE

    @property
    def offered(self) -> list[str]:
        """The enabled mechanisms."""
        return list(self._mechanisms)

    def authenticate(self, token: bytes) -> tuple[bytes, int]:
        """Evaluate a token; return the response token and the session lifetime in ms (0: no limit).

        :raises KafkaError: ILLEGAL_SASL_STATE after the authentication; SASL_AUTHENTICATION_FAILED, with a
            message that does not tell whether the name or the password was wrong.
        """
        if self.state is SaslState.COMPLETE:
            message = "SaslAuthenticate request received after successful authentication"
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)
        try:
            response = self._evaluate(token)
        except LoginRefused as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
        except BadCredentials as error:
            what = "re-authentication" if self._is_renewal else "authentication"
            message = (
                f"Authentication failed during {what} due to invalid credentials "
                f"with SASL mechanism {self.mechanism}"
            )
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message) from error
        return response, self._session_ms if self.is_authenticated else 0

    def _evaluate(self, token: bytes) -> bytes:
        assert self.state is SaslState.AUTHENTICATE, self.state
        assert self._exchange is not None
        try:
            response = self._exchange.evaluate(token)
            if self._exchange.user is not None:
                self._complete(self._exchange, self._exchange.user)
        except (LoginRefused, BadCredentials) as error:
            reason = error.reason if isinstance(error, LoginRefused) else str(error)
            self._fail(f"login by {self.mechanism} failed: {reason}")
            raise
        return response

    def _complete(self, exchange: ServerMechanism, user: str) -> None:
        if self._is_renewal and user != self.user:
            message = f"Cannot change principals during re-authentication from User.{self.user}: User.{user}"
            raise LoginRefused(message)
        login_outcome = LoginOutcome.RENEWED if self._is_renewal else LoginOutcome.SUCCEEDED
        self.user, self.is_delegation_token = user, exchange.is_delegation_token
        # The owner of a delegation token had a principal when the token was created.
        if self._has_principal_builder and not self.is_delegation_token:
            self._unreported = login_outcome
        else:
            self._notify(login_outcome, user)
        self._exchange = None
        longest_ms = self._session_ms_max.get(self.mechanism or "", 0) or None
        # The session ends with the credential.
        lifetimes_ms = [each for each in (longest_ms, exchange.lifetime_ms) if each is not None]
        self._session_ms = min(lifetimes_ms, default=0)
        self._expires_ms = self._now_ms() + self._session_ms if lifetimes_ms else None
        self._go(SaslState.COMPLETE)

    def _fail(self, why: str, login_outcome: LoginOutcome = LoginOutcome.FAILED) -> None:
        claimed = self._exchange.claimed_user if self._exchange is not None else self.user
        self._notify(login_outcome, claimed or "", why)
        self.failure = why
        self._exchange = self._unreported = None
        self._go(SaslState.FAILED)

    def _notify(self, login_outcome: LoginOutcome, user: str, reason: str = "") -> None:
        event = LoginEvent(self.mechanism or "", login_outcome, user, reason, self._address, self._listener)
        self._observe(event)

    def _go(self, state: SaslState) -> None:
        assert state in TRANSITIONS[self.state], (self.state, state)
        self.state = state

    def statistics(self) -> dict[str, object]:
        return {"state": self.state.name, "mechanism": self.mechanism, "user": self.user}
