"""A connection's login (KIP-43, KIP-152) and its renewal (KIP-368): what a client may send when.

The order of things is Apache Kafka's (`SaslServerAuthenticator`): ApiVersions at most once, SaslHandshake, then
tokens, in SaslAuthenticate or, after SaslHandshake v0, bare.
"""

import enum
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from barnabas.security.sasl.mechanism import BadCredentials, LoginRefused, ServerMechanism
from barnabas.wire.errors import ErrorCode, KafkaError

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36

#: A connection may log in anew no sooner than this after it last began to.
RENEWAL_INTERVAL_MS_MIN = 1000


class SaslState(enum.Enum):
    """Where a login stands."""

    BEGIN = "ApiVersions or SaslHandshake is due"
    HANDSHAKE = "SaslHandshake is due"
    AUTHENTICATE = "a token is due"
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
    """What can come of a login; for those who watch."""

    SUCCEEDED = "succeeded"
    RENEWED = "renewed"
    FAILED = "failed"
    EXPIRED = "expired"


class LoginEvent(NamedTuple):
    """What came of a login; for metrics and the log."""

    mechanism: str  #: empty: none was chosen yet
    outcome: LoginOutcome
    user: str  #: as the client calls itself where the login failed; empty where it has not said
    reason: str  #: why it failed; empty otherwise
    address: str
    listener: str


Observe: TypeAlias = Callable[[LoginEvent], None]

#: The mechanisms that a listener offers, and how an exchange by each begins.
Mechanisms: TypeAlias = Mapping[str, Callable[[], ServerMechanism]]


class SaslAuthenticationError(Exception):
    """The connection must close without an answer; a failed login only after a while."""

    def __init__(self, reason: str, *, is_immediate: bool) -> None:
        super().__init__(reason)
        self.is_immediate = is_immediate


class Authenticator:
    """One connection's login. It is asked about every frame until `is_done`."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        session_ms_max: Mapping[str, int],
        now_ms: Callable[[], int],
        observe: Observe,
        address: str = "",
        listener: str = "",
    ) -> None:
        """`session_ms_max` is for how long a login by each mechanism is good; 0 for ever."""
        self._mechanisms = mechanisms
        self._session_ms_max = session_ms_max
        self._now_ms = now_ms
        self._observe = observe
        self._address = address
        self._listener = listener
        self._exchange: ServerMechanism | None = None
        self._takes_bare_tokens = False
        self._expires_ms: int | None = None  #: when the session ends, on the monotonic clock
        self._renewed_ms: int | None = None  #: when a renewal was last begun
        self.state = SaslState.BEGIN
        self.mechanism: str | None = None
        self.user: str | None = None  #: as last logged in
        self.failure = ""  #: why it has failed; for the log

    @property
    def is_complete(self) -> bool:
        """Whether the client is known, for now at least."""
        return self.state is SaslState.COMPLETE

    @property
    def is_in_session(self) -> bool:
        """Whether requests may come at this moment."""
        return self.is_complete and (self._expires_ms is None or self._now_ms() <= self._expires_ms)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to ask: the client is known for good."""
        return self.is_complete and self._expires_ms is None

    @property
    def _is_renewal(self) -> bool:
        return self.user is not None

    # Frames

    def receive(self, frame: memoryview) -> bytes | None:
        """The token to answer a bare one with; None where the frame is a request, to be handled as such.

        :raises SaslAuthenticationError: When it may not come now.
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
            self._fail(f"api key {api_key} came where {self.state.value}")
            raise SaslAuthenticationError(self.failure, is_immediate=True)

    # Requests

    def admit(self, api_key: int, api_name: str) -> None:
        """Let a request be handled that is well-formed.

        :raises KafkaError: ILLEGAL_SASL_STATE when a token is due and it is none.
        """
        if self.state is SaslState.AUTHENTICATE and api_key != SASL_AUTHENTICATE:
            self._fail(f"api key {api_key} came where a token is due")
            name = re.sub("(?<!^)([A-Z])", r"_\1", api_name).upper()  # as Kafka spells it
            message = f"Unexpected Kafka request of type {name} during SASL authentication."
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)

    def on_api_versions_answered(self) -> None:
        """ApiVersions was answered without an error: it does not come twice."""
        if self.state is SaslState.BEGIN:
            self._go(SaslState.HANDSHAKE)

    def handshake(self, mechanism: str, version: int) -> ErrorCode:
        """Choose a mechanism: NONE, ILLEGAL_SASL_STATE after the login, or UNSUPPORTED_SASL_MECHANISM."""
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
        """The mechanisms that a client may choose from."""
        return list(self._mechanisms)

    def authenticate(self, token: bytes) -> tuple[bytes, int]:
        """Take a token; gives the one to answer with, and for how many ms the login is good (0: for ever).

        :raises KafkaError: ILLEGAL_SASL_STATE after the login; SASL_AUTHENTICATION_FAILED, in words that do
            not tell whether it was the name or the password.
        """
        if self.state is SaslState.COMPLETE:
            message = "SaslAuthenticate request received after successful authentication"
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)
        try:
            answer = self._evaluate(token)
        except LoginRefused as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
        except BadCredentials as error:
            what = "re-authentication" if self._is_renewal else "authentication"
            message = (
                f"Authentication failed during {what} due to invalid credentials "
                f"with SASL mechanism {self.mechanism}"
            )
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message) from error
        return answer, self._session_ms if self.is_complete else 0

    def _evaluate(self, token: bytes) -> bytes:
        assert self.state is SaslState.AUTHENTICATE, self.state
        assert self._exchange is not None
        try:
            answer = self._exchange.evaluate(token)
            if self._exchange.user is not None:
                self._complete(self._exchange.user)
        except (LoginRefused, BadCredentials) as error:
            self._fail(f"login by {self.mechanism} failed: {error}")
            raise
        return answer

    def _complete(self, user: str) -> None:
        if self._is_renewal and user != self.user:
            message = f"Cannot change principals during re-authentication from User.{self.user}: User.{user}"
            raise LoginRefused(message)
        outcome = LoginOutcome.RENEWED if self._is_renewal else LoginOutcome.SUCCEEDED
        self._notify(outcome, user)
        self.user = user
        self._exchange = None
        self._expires_ms = self._now_ms() + self._session_ms if self._session_ms else None
        self._go(SaslState.COMPLETE)

    @property
    def _session_ms(self) -> int:
        return self._session_ms_max.get(self.mechanism or "", 0)

    def _fail(self, why: str, outcome: LoginOutcome = LoginOutcome.FAILED) -> None:
        claimed = self._exchange.claimed_user if self._exchange is not None else self.user
        self._notify(outcome, claimed or "", why)
        self.failure = why
        self._exchange = None
        self._go(SaslState.FAILED)

    def _notify(self, outcome: LoginOutcome, user: str, reason: str = "") -> None:
        event = LoginEvent(self.mechanism or "", outcome, user, reason, self._address, self._listener)
        self._observe(event)

    def _go(self, state: SaslState) -> None:
        assert state in TRANSITIONS[self.state], (self.state, state)
        self.state = state

    def statistics(self) -> dict[str, object]:
        """Where the login stands, without secrets."""
        return {"state": self.state.name, "mechanism": self.mechanism, "user": self.user}
