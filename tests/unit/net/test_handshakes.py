import asyncio
import ssl
from types import SimpleNamespace
from typing import cast

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.turns import Turns
from barnabas.net import handshakes
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.net.creation_rate import CreationRates
from barnabas.net.handshakes import Handshakes
from barnabas.net.tls_transport import TlsConnection, TlsPhase
from barnabas.security.tls_server import TlsServer
from support.loop import on_loop, turns
from support.waiting import reached


class Below(asyncio.Transport):
    """A socket that remembers whether it is closed."""

    is_closed = is_paused = False

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_closed


def connection_of(handshakes: Handshakes) -> TlsConnection:
    return TlsConnection(
        asyncio.BufferedProtocol(), "SSL", handshakes, lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    )


class Bench:
    """Handshakes of a listener, with connections that send nothing real."""

    def __init__(
        self, *, timeout_ms: int = 60_000, count_max: int = 10_000, delay_ms: int = 0, rate: int | None = None
    ) -> None:
        clock = ManualClock()
        limits = ConnectionLimits(count_max, creation_rates=CreationRates(rate))
        self.connections = Connections(clock, frame_bytes_max=1_000, limits=limits, idle_ms_max=-1)
        self.failures: list[tuple[str, str]] = []
        tls = SimpleNamespace(handshake_failed=lambda address, why: self.failures.append((address, why)))
        self.turns = Turns(clock.monotonic_ns)
        self.handshakes = Handshakes(
            cast("TlsServer", tls), self.connections, self.turns, lambda host: delay_ms, timeout_ms=timeout_ms
        )

    def connect(self) -> tuple[TlsConnection, Below]:
        connection, below = connection_of(self.handshakes), Below()
        connection.connection_made(below)
        return connection, below


@on_loop
async def test_a_client_that_is_too_slow_is_disconnected() -> None:
    bench = Bench(timeout_ms=1)
    _, below = bench.connect()
    assert len(bench.connections) == 1
    await reached(lambda: below.is_closed)
    assert bench.failures == []  # no login has failed
    assert len(bench.connections) == 0


@on_loop
async def test_connections_beyond_the_rate_are_read_later() -> None:
    bench = Bench(rate=500)
    below = [bench.connect()[1] for _ in range(502)]
    await turns(1)
    assert [each.is_paused for each in below] == [False] * 501 + [True]
    await reached(lambda: not below[-1].is_paused)
    assert not below[-1].is_closed


@on_loop
async def test_connections_far_beyond_the_rate_are_closed() -> None:
    bench = Bench(rate=1)
    below = [bench.connect()[1] for _ in range(13)]
    await reached(lambda: [each.is_closed for each in below] == [False] * 12 + [True])


@on_loop
async def test_limits_of_connections_count_those_that_are_silent() -> None:
    bench = Bench(count_max=2)
    bench.connect()
    bench.connect()
    _, third = bench.connect()
    assert third.is_closed
    assert bench.handshakes.statistics() == {
        "silent_count": 2,
        "awaited_count": 0,
        "waiting_count": 0,
        "completed_count": 0,
        "failed_count": 1,
    }


@on_loop
async def test_the_oldest_handshake_is_given_up_when_too_many_clients_are_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshakes, "AWAITED_COUNT_MAX", 2)
    bench = Bench()
    opened = [bench.connect() for _ in range(3)]
    for connection, _ in opened:
        connection._change(TlsPhase.HANDSHAKE)
        bench.handshakes.wait(connection)
    assert [below.is_closed for _, below in opened] == [True, False, False]
    assert bench.handshakes.statistics()["awaited_count"] == 2


@on_loop
async def test_handshakes_that_have_begun_go_on_first_one_in_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    opened = [bench.connect()[0] for _ in range(4)]
    order: list[int] = []
    monkeypatch.setattr(TlsConnection, "shake_hands", lambda self: order.append(opened.index(self)))
    for begun in opened[2:]:
        begun._tls = cast("ssl.SSLObject", object())
    for connection in opened:
        bench.handshakes.go_on(connection)
    assert bench.handshakes.statistics()["waiting_count"] == 4
    await reached(lambda: len(order) == 4)
    assert order == [2, 3, 0, 1]


@on_loop
async def test_clients_that_connect_too_often_are_kept_and_then_reset() -> None:
    bench = Bench(delay_ms=1)
    _, below = bench.connect()
    await reached(lambda: below.is_paused)
    await reached(lambda: below.is_closed)


@on_loop
async def test_the_end_of_a_connection_stops_its_timer() -> None:
    bench = Bench()
    connection, _ = bench.connect()
    connection.connection_lost(None)
    assert bench.handshakes._timers == {}
    assert bench.failures == []
