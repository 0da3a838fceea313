"""A connection on which a client must log in."""

import struct

from barnabas.security.sasl.authenticator import SaslAuthenticationError, SaslState
from support.connections import FRAME_BYTES_MAX, Client
from support.loop import on_loop, turns

RECEIVE_BYTES_MAX = 40


class Login:
    """A fake authenticator driven by frames: `in` logs in, `no` fails, `out` ends the session, `bare` is a token."""

    def __init__(self, *, for_good: bool = True) -> None:
        self.state = SaslState.BEGIN
        self.user: str | None = None
        self.principal: str | None = None
        self.failure = "so it is"
        self.needs_principal = False
        self.is_expired = False
        self._for_good = for_good

    def receive(self, frame: memoryview) -> bytes | None:
        text = bytes(frame).decode()
        if text.startswith("now:in"):
            self.state, self.user = SaslState.COMPLETE, "alice"
        elif text.startswith("now:no"):
            self.state = SaslState.FAILED
        elif text == "out":
            raise SaslAuthenticationError("so it is", is_immediate=True)
        elif text == "out later":
            self.state = SaslState.FAILED
            raise SaslAuthenticationError("so it is", is_immediate=False)
        elif text == "bare":
            return b"token;"
        return None

    @property
    def is_authenticated(self) -> bool:
        return self.state is SaslState.COMPLETE

    @property
    def needs_no_more_checks(self) -> bool:
        return self.is_authenticated and self._for_good


class Sasl:
    """A SaslServer without delays of failures."""

    receive_bytes_max = RECEIVE_BYTES_MAX
    failure_delay_ms = 0

    def __init__(self, login: Login | None = None) -> None:
        self.login = login or Login()

    def authenticator(self, address: str, *, has_principal_builder: bool) -> Login:
        assert not has_principal_builder
        return self.login


@on_loop
async def test_requests_around_a_login_are_answered_in_order() -> None:
    client = Client(sasl=Sasl())
    client.send("once:a", "once:b")
    client.send("now:in", "once:c", "once:d")
    assert client.received == ["a", "b", "in", "c", "d"]


@on_loop
async def test_an_authenticated_connection_has_a_principal_and_no_further_checks() -> None:
    client = Client(sasl=Sasl())
    assert client.connection.info.principal == "User:ANONYMOUS"
    client.send("now:in", "now:no")
    assert client.connection.info.principal == "User:alice"
    assert client.connection.info.share is client.dispatcher.broker.turns.share_of("User:alice")
    assert client.received == ["in", "no"]


@on_loop
async def test_a_session_with_a_lifetime_is_checked_for_each_request() -> None:
    sasl = Sasl(Login(for_good=False))
    client = Client(sasl=sasl)
    client.send("now:in", "once:a")
    sasl.login.is_expired = True
    client.send("once:b", "out", "once:c")
    assert client.received == ["in", "a", "b"]
    assert client.transport.closed


@on_loop
async def test_a_failed_login_is_answered_late_and_nothing_is_read_afterwards() -> None:
    client = Client(sasl=Sasl())
    client.send("now:a", "now:no", "now:b")
    assert client.received == ["a"]
    assert not client.transport.reading
    assert not client.transport.closed
    await turns(3)
    assert client.received == ["a", "no"]
    assert client.transport.closed
    assert client.dispatcher.started == ["a", "no"]


@on_loop
async def test_a_login_that_ends_without_a_response_is_closed_immediately_or_late() -> None:
    client = Client(sasl=Sasl())
    client.send("out")
    assert client.transport.closed
    client = Client(sasl=Sasl())
    client.send("out later")
    assert not client.transport.closed
    await turns(3)
    assert (client.transport.closed, client.received) == (True, [])


@on_loop
async def test_a_client_that_disconnects_before_its_failure_is_sent_leaks_nothing() -> None:
    client = Client(sasl=Sasl())
    client.send("now:no")
    client.connection.connection_lost(None)
    await turns(3)
    assert client.received == []


@on_loop
async def test_raw_tokens_are_answered_in_frames_of_their_own() -> None:
    client = Client(sasl=Sasl())
    client.send("bare")
    assert bytes(client.transport.out) == struct.pack(">i", 6) + b"token;"


@on_loop
async def test_a_malformed_request_before_the_login_gets_no_response() -> None:
    client = Client(sasl=Sasl())
    client.send("bad:text;")
    assert (client.transport.closed, client.received) == (True, [])


@on_loop
async def test_frames_are_small_until_the_login() -> None:
    client = Client(sasl=Sasl())
    client.send("now:in" + "x" * RECEIVE_BYTES_MAX)
    assert client.transport.closed
    client = Client(sasl=Sasl())
    client.send("now:in", "now:" + "x" * RECEIVE_BYTES_MAX)
    assert len(client.received) == 2
    client.send_bytes(struct.pack(">i", FRAME_BYTES_MAX + 1))
    assert client.transport.closed
