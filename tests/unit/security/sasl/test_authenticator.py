import pytest

from barnabas.base.clock import ManualClock
from barnabas.security.sasl.authenticator import (
    API_VERSIONS,
    RENEWAL_INTERVAL_MS_MIN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    TRANSITIONS,
    Authenticator,
    LoginEvent,
    LoginOutcome,
    SaslAuthenticationError,
    SaslState,
)
from barnabas.security.sasl.mechanism import BadCredentials, LoginRefused
from barnabas.wire.errors import ErrorCode, KafkaError

PRODUCE = 0
SESSION_MS = 60_000


class Echo:
    """A mechanism of two tokens: a name, then anything but `bad` or `wrong`."""

    def __init__(self) -> None:
        self.user: str | None = None
        self.claimed_user: str | None = None
        self.lifetime_ms: int | None = None
        self.is_delegation_token = False
        self._name = ""

    def evaluate(self, token: bytes) -> bytes:
        if token == b"wrong":
            raise LoginRefused("Authentication failed: wrong")
        if token == b"bad":
            raise BadCredentials("the password of alice is not 'bad'")
        if self._name:
            self.user = self._name
            return b"welcome"
        self._name = self.claimed_user = token.decode()
        return b"and?"


class Login:
    """An authenticator, called as by a connection."""

    def __init__(self, session_ms: int = 0, *, has_principal_builder: bool = False) -> None:
        self.clock = ManualClock(0)
        self.events: list[LoginEvent] = []
        self.machine = Authenticator(
            {"ECHO": Echo, "OTHER": Echo},
            {"ECHO": session_ms},
            self.clock.monotonic_ms,
            self.events.append,
            "10.1.2.3",
            "CLIENTS",
            has_principal_builder=has_principal_builder,
        )

    @property
    def outcomes(self) -> list[tuple[str, LoginOutcome]]:
        return [(event.mechanism, event.outcome) for event in self.events]

    def arrives(self, api_key: int) -> None:
        """Receive a frame that is a request, judged by its key."""
        assert self.machine.receive(memoryview(api_key.to_bytes(2, "big") + b"\0\1rest")) is None
        self.machine.admit(api_key, "DescribeCluster")

    def handshake(self, mechanism: str = "ECHO", version: int = 1) -> ErrorCode:
        self.arrives(SASL_HANDSHAKE)
        return self.machine.handshake(mechanism, version)

    def authenticate(self, token: bytes) -> tuple[bytes, int]:
        self.arrives(SASL_AUTHENTICATE)
        return self.machine.authenticate(token)

    def log_in(self, user: bytes = b"alice") -> tuple[bytes, int]:
        assert self.handshake() is ErrorCode.NONE
        self.authenticate(user)
        return self.authenticate(b"password")


def test_api_versions_handshake_and_tokens_log_in() -> None:
    login = Login()
    login.arrives(API_VERSIONS)
    login.machine.on_api_versions_answered()
    assert login.handshake() is ErrorCode.NONE
    assert login.authenticate(b"alice") == (b"and?", 0)
    assert not login.machine.is_authenticated
    assert login.authenticate(b"password") == (b"welcome", 0)
    assert login.machine.needs_no_more_checks
    assert login.machine.statistics() == {"state": "COMPLETE", "mechanism": "ECHO", "user": "alice"}


def test_api_versions_is_optional() -> None:
    assert Login().log_in() == (b"welcome", 0)


def test_api_versions_may_be_repeated_after_an_unsupported_version() -> None:
    login = Login()
    login.arrives(API_VERSIONS)
    login.arrives(API_VERSIONS)
    assert login.log_in()


def test_after_handshake_v0_tokens_are_raw() -> None:
    login = Login()
    assert login.handshake(version=0) is ErrorCode.NONE
    assert login.machine.receive(memoryview(b"alice")) == b"and?"
    assert login.machine.receive(memoryview(b"password")) == b"welcome"
    assert (login.machine.user, login.machine.needs_no_more_checks) == ("alice", True)


@pytest.mark.parametrize("token", [b"bad", b"wrong"])
def test_an_invalid_raw_token_closes_the_connection_after_a_delay(token: bytes) -> None:
    login = Login()
    login.handshake(version=0)
    with pytest.raises(SaslAuthenticationError) as ended:
        login.machine.receive(memoryview(token))
    assert not ended.value.is_immediate
    assert login.machine.state is SaslState.FAILED


@pytest.mark.parametrize("api_key", [PRODUCE, SASL_AUTHENTICATE, 9999, -1 % 65536])
def test_any_other_first_request_gets_no_response(api_key: int) -> None:
    login = Login()
    with pytest.raises(
        SaslAuthenticationError,
        match=f"received api key {api_key}, but ApiVersions or SaslHandshake is expected",
    ) as ended:
        login.arrives(api_key)
    assert ended.value.is_immediate


@pytest.mark.parametrize("api_key", [PRODUCE, API_VERSIONS])
def test_after_api_versions_only_a_handshake_is_accepted(api_key: int) -> None:
    login = Login()
    login.machine.on_api_versions_answered()
    with pytest.raises(SaslAuthenticationError, match="SaslHandshake is expected"):
        login.arrives(api_key)


@pytest.mark.parametrize("api_key", [PRODUCE, API_VERSIONS, SASL_HANDSHAKE])
def test_other_requests_in_place_of_a_token_get_an_error(api_key: int) -> None:
    login = Login()
    login.handshake()
    with pytest.raises(
        KafkaError, match="Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL"
    ) as refused:
        login.arrives(api_key)
    assert refused.value.code is ErrorCode.ILLEGAL_SASL_STATE
    assert login.machine.state is SaslState.FAILED


def test_an_unknown_mechanism_fails_with_the_enabled_ones() -> None:
    login = Login()
    assert login.handshake("PLAIN") is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert login.machine.offered == ["ECHO", "OTHER"]
    assert login.machine.state is SaslState.FAILED
    assert login.machine.failure == "SASL mechanism 'PLAIN' is not offered"


def test_the_reason_of_a_failure_is_sent_only_if_it_reveals_nothing() -> None:
    login = Login()
    login.handshake()
    with pytest.raises(KafkaError, match=": Authentication failed: wrong"):
        login.authenticate(b"wrong")
    login = Login()
    login.handshake()
    message = "failed during authentication due to invalid credentials with SASL mechanism ECHO"
    with pytest.raises(KafkaError, match=message) as failed:
        login.authenticate(b"bad")
    assert failed.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert login.machine.failure == "login by ECHO failed: the password of alice is not 'bad'"


def test_after_the_login_handshakes_and_tokens_are_errors_that_keep_the_session() -> None:
    login = Login()
    login.log_in()
    assert login.handshake() is ErrorCode.ILLEGAL_SASL_STATE
    with pytest.raises(KafkaError, match="SaslAuthenticate request received after successful authentication"):
        login.authenticate(b"alice")
    login.arrives(PRODUCE)
    assert login.machine.needs_no_more_checks


# Session lifetimes (KIP-368)


def test_a_session_has_a_lifetime_and_accepts_requests_until_then() -> None:
    login = Login(SESSION_MS)
    assert login.log_in() == (b"welcome", SESSION_MS)
    assert (login.machine.is_authenticated, login.machine.needs_no_more_checks) == (True, False)
    login.clock.advance(SESSION_MS)
    login.arrives(PRODUCE)
    login.clock.advance(1)
    with pytest.raises(SaslAuthenticationError, match="has expired") as ended:
        login.arrives(PRODUCE)
    assert ended.value.is_immediate


def test_a_session_is_renewed_on_the_same_connection_even_after_its_end() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    for _ in range(3):
        login.clock.advance(SESSION_MS + 1)
        assert login.log_in() == (b"welcome", SESSION_MS)
        login.arrives(PRODUCE)


def test_reauthenticating_too_often_is_an_error_that_keeps_the_session() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    login.log_in()
    login.clock.advance(RENEWAL_INTERVAL_MS_MIN - 1)
    assert login.handshake() is ErrorCode.ILLEGAL_SASL_STATE
    login.clock.advance(1)
    login.log_in()


def test_requests_must_wait_for_a_reauthentication() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    login.handshake()
    with pytest.raises(KafkaError, match="Unexpected Kafka request"):
        login.arrives(PRODUCE)


def test_a_reauthentication_cannot_change_the_user() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    with pytest.raises(KafkaError, match=r"Cannot change principals .* from User\.alice: User\.bob"):
        login.log_in(b"bob")
    assert login.machine.state is SaslState.FAILED


def test_a_reauthentication_cannot_change_the_mechanism() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    assert login.handshake("OTHER") is ErrorCode.NONE
    with pytest.raises(
        SaslAuthenticationError, match="by ECHO cannot be renewed by another mechanism"
    ) as ended:
        login.arrives(SASL_AUTHENTICATE)
    assert not ended.value.is_immediate


def test_a_failed_reauthentication_is_reported() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    login.handshake()
    with pytest.raises(KafkaError, match="failed during re-authentication due to invalid credentials"):
        login.authenticate(b"bad")


def test_results_are_counted_by_known_mechanism() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    login.log_in()
    login.clock.advance(SESSION_MS + 1)
    with pytest.raises(SaslAuthenticationError):
        login.arrives(PRODUCE)
    assert login.outcomes == [
        ("ECHO", LoginOutcome.SUCCEEDED),
        ("ECHO", LoginOutcome.RENEWED),
        ("ECHO", LoginOutcome.EXPIRED),
    ]
    login = Login()
    login.handshake("a name that somebody made up")
    assert login.outcomes == [("", LoginOutcome.FAILED)]


def test_a_login_is_reported_once_the_user_has_a_principal() -> None:
    login = Login(SESSION_MS, has_principal_builder=True)
    login.log_in()
    assert login.machine.needs_principal
    assert login.outcomes == []
    login.machine.set_principal("Team:a")
    assert login.outcomes == [("ECHO", LoginOutcome.SUCCEEDED)]
    login.clock.advance(1000)
    login.log_in()
    login.machine.set_principal("Team:a")
    assert login.outcomes[1:] == [("ECHO", LoginOutcome.RENEWED)]


def test_a_user_without_a_principal_is_reported_as_failed_only() -> None:
    login = Login(has_principal_builder=True)
    login.log_in()
    login.machine.refuse("no such team")
    [event] = login.events
    assert (event.outcome, event.user, event.reason) == (LoginOutcome.FAILED, "alice", "no such team")
    assert not login.machine.needs_principal


def test_a_renewal_with_another_principal_is_reported_as_failed_only() -> None:
    login = Login(SESSION_MS, has_principal_builder=True)
    login.log_in()
    login.machine.set_principal("Team:a")
    login.clock.advance(1000)
    login.log_in()
    with pytest.raises(LoginRefused, match="Cannot change principals"):
        login.machine.set_principal("Team:b")
    assert [outcome for _, outcome in login.outcomes] == [LoginOutcome.SUCCEEDED, LoginOutcome.FAILED]


def test_an_event_has_the_authenticated_or_claimed_user() -> None:
    login = Login(SESSION_MS)
    login.log_in()
    assert login.events == [LoginEvent("ECHO", LoginOutcome.SUCCEEDED, "alice", "", "10.1.2.3", "CLIENTS")]
    login = Login()
    login.handshake()
    login.authenticate(b"bob")
    with pytest.raises(KafkaError):
        login.authenticate(b"wrong")
    [event] = login.events
    assert (event.outcome, event.user) == (LoginOutcome.FAILED, "bob")
    assert "Authentication failed: wrong" in event.reason


def test_every_state_is_in_the_table_and_failure_is_final() -> None:
    assert set(TRANSITIONS) == set(SaslState)
    assert all(
        SaslState.FAILED in after for state, after in TRANSITIONS.items() if state is not SaslState.FAILED
    )
    assert TRANSITIONS[SaslState.FAILED] == frozenset()
