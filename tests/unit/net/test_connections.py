from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.net.connections import ConnectionLimits, Connections
from support.loop import on_loop, turns


class Client:
    """A fake connection."""

    def __init__(
        self, active_ms: int = 0, listener: str = "A", *, is_busy: bool = False, host: str = "one"
    ) -> None:
        self.active_ms, self.listener, self.is_busy = active_ms, listener, is_busy
        self.client_host = host
        self.closed: list[str] = []
        self.aborted = False
        self.sent_count = 0
        self.reads = False

    def has_read(self) -> bool:
        return self.reads

    def close(self, why: str) -> None:
        self.closed.append(why)

    def abort(self) -> None:
        self.aborted = True

    def send(self) -> None:
        self.sent_count += 1


def connections(now_ms: int = 10_000, **options: Any) -> Connections:
    options = {"frame_bytes_max": 100, "limits": ConnectionLimits(2), "idle_ms_max": 1000, **options}
    return Connections(ManualClock(now_ms), **options)


def test_connections_are_accepted_up_to_the_limit_and_counted() -> None:
    owner = connections()
    one, two, three = Client(), Client(), Client()
    assert [owner.add(each) for each in (one, two, three)] == [None, None, "more than 2 connections"]
    owner.remove(three)
    owner.remove(three)
    owner.remove(one)
    assert owner.add(Client()) is None
    assert owner.statistics() == {
        "open_count": 2,
        "accepted_count": 4,
        "delayed_count": 0,
        "refused_count": 0,
    }
    assert len(owner) == 2


def test_an_address_has_a_limit_and_some_have_their_own() -> None:
    owner = connections(limits=ConnectionLimits(address_count_max=1, overrides={"two": 2}))
    first, second = Client(), Client()
    assert [owner.add(first), owner.add(second)] == [None, "more than 1 connections from one"]
    assert [owner.add(Client(host="two")) for _ in range(2)] == [None, None]
    assert owner.add(Client(host="two")) == "more than 2 connections from two"
    for closed in (first, second, second):
        owner.remove(closed)
    assert owner.add(Client()) is None


def test_a_listener_may_have_its_own_limit() -> None:
    owner = connections(limits=ConnectionLimits(listeners={"A": 1}))
    assert owner.add(Client()) is None
    assert owner.add(Client()) == "more than 1 connections on listener A"
    assert owner.add(Client(listener="B")) is None


@pytest.mark.parametrize(
    ("active_ms", "is_busy", "closes"),
    [(8_999, False, True), (9_000, False, False), (10_000, False, False), (0, True, False)],
)
def test_idle_connections_without_pending_requests_are_closed(
    active_ms: int, is_busy: bool, closes: bool
) -> None:
    owner, client = connections(), Client(active_ms, is_busy=is_busy)
    owner.add(client)
    owner.close_idle()
    assert client.closed == (["idle for more than 1000 ms"] if closes else [])


def test_a_client_that_reads_a_response_slowly_is_not_idle() -> None:
    owner, client = connections(), Client()
    client.reads = True
    owner.add(client)
    owner.close_idle()
    assert (client.closed, client.active_ms) == ([], 10_000)


@pytest.mark.parametrize(("active_ms", "aborts"), [(7_999, True), (8_000, False)])
def test_a_closed_connection_that_is_not_read_is_aborted(active_ms: int, aborts: bool) -> None:
    owner, client = connections(), Client(active_ms)
    owner.add(client)
    owner.close_idle()
    assert client.aborted is aborts


def test_without_a_limit_no_connection_is_idle() -> None:
    owner, client = connections(idle_ms_max=-1), Client(0)
    owner.add(client)
    owner.close_idle()
    assert client.closed == []


def test_connections_are_counted_by_listener() -> None:
    owner = connections()
    for listener in "AAB":
        owner.add(Client(listener=listener))
    assert owner.by_listener() == {"A": 2, "B": 1}


def test_all_connections_can_be_aborted() -> None:
    owner, clients = connections(), [Client() for _ in range(3)]
    for client in clients:
        owner.add(client)
    owner.abort_all()
    assert all(client.aborted for client in clients)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, {}),
        ({"send_buffer_bytes": -1, "receive_buffer_bytes": 9}, {SO_RCVBUF: 9}),
        ({"send_buffer_bytes": 7, "receive_buffer_bytes": 9}, {SO_SNDBUF: 7, SO_RCVBUF: 9}),
    ],
)
def test_socket_buffers_are_sized_as_configured(sizes: dict[str, int], expected: dict[int, int]) -> None:
    class Socket:
        def __init__(self) -> None:
            self.options: dict[int, int] = {}

        def setsockopt(self, level: int, option: int, value: int, /) -> None:
            assert level == SOL_SOCKET
            self.options[option] = value

    socket = Socket()
    connections(**sizes).size_buffers(socket)
    connections(**sizes).size_buffers(None)
    assert socket.options == expected


@on_loop
async def test_responses_of_a_turn_are_written_together_at_its_end() -> None:
    one, two, owner = Client(), Client(), connections()
    owner.send_soon(one)
    owner.send_soon(two)
    assert (one.sent_count, two.sent_count) == (0, 0)
    await turns(1)
    assert (one.sent_count, two.sent_count) == (1, 1)
    owner.send_soon(one)
    await turns(1)
    assert (one.sent_count, two.sent_count) == (2, 1)
