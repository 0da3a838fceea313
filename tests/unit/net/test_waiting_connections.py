"""New connections beyond `max.connection.creation.rate` over real sockets: the event loops differ in their reading."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from barnabas.base.clock import ManualClock
from barnabas.config.tls import listener_tls_settings
from barnabas.net.connection import ServerConnection
from barnabas.net.connection_state import QUEUED_BYTES_MAX, ConnectionPhase
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.net.creation_rate import CreationRates
from barnabas.net.listener import NetworkListener
from barnabas.security.tls_server import TlsServer
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from support.loop import turns
from support.nodes import config_of, frame_of, response_of, running_node
from support.tls import AUTHORITY
from support.waiting import reached

#: One connection per second: two are served at once, and the third waits for a second.
RATES = CreationRates(of_broker=1)
AT_ONCE_COUNT = 2

#: Turns of the loop in which a client that is not held back would have been served.
MANY_TURNS = 300
REQUESTS_COUNT = 100_000


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    def run_on_loop(scenario: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario)

    return run_on_loop


@asynccontextmanager
async def busy_listener(directory: Path, protocol: str) -> AsyncIterator[tuple[NetworkListener, Connections]]:
    """Yield a listener that has just accepted as many connections as it serves at once."""
    connections = Connections(
        ManualClock(), frame_bytes_max=1_000, limits=ConnectionLimits(9, creation_rates=RATES), idle_ms_max=-1
    )
    async with running_node(directory) as node:
        keystore = AUTHORITY.issue().write_pem(directory / "own.pem")
        config = config_of(
            directory,
            listeners=f"{protocol}://127.0.0.1:0",
            ssl_keystore_type="PEM",
            ssl_keystore_location=str(keystore),
        )
        (listener,) = config.listeners
        tls = None
        if protocol == "SSL":
            settings = listener_tls_settings(config, listener)
            tls = TlsServer(settings, lambda: 0, lambda event: None, listener.name)
        opened = NetworkListener(listener, config, node.dispatcher, connections, tls=tls)
        await opened.start()
        await opened.accept()
        first = [await asyncio.open_connection(*opened.address) for _ in range(AT_ONCE_COUNT)]
        try:
            yield opened, connections
        finally:
            for _, writer in first:
                writer.close()
            connections.abort_all()
            await opened.stop()


def test_requests_on_a_waiting_connection_stay_in_the_socket_and_are_answered_later(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    async def scenario() -> None:
        async with busy_listener(tmp_path, "PLAINTEXT") as (opened, connections):
            reader, writer = await asyncio.open_connection(*opened.address)
            frame = frame_of(MetadataRequest(topics=[]), 12)
            writer.write((len(frame).to_bytes(4, "big") + frame) * REQUESTS_COUNT)
            await turns(MANY_TURNS)
            waiting = list(connections._open)[-1]
            assert isinstance(waiting, ServerConnection)
            assert waiting._state.phase is ConnectionPhase.THROTTLED
            assert sum(map(len, waiting._state.queue)) < QUEUED_BYTES_MAX
            size_bytes = int.from_bytes(await reader.readexactly(4), "big")
            answer = size_bytes.to_bytes(4, "big") + await reader.readexactly(size_bytes)
            assert response_of(MetadataResponse, 12, answer).error_code == 0
            writer.close()

    run(scenario())


def test_the_handshake_of_a_waiting_connection_begins_later(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    async def scenario() -> None:
        async with busy_listener(tmp_path, "SSL") as (opened, _):
            context = ssl.create_default_context(cadata=AUTHORITY.pem)
            connecting = asyncio.create_task(
                asyncio.open_connection(*opened.address, ssl=context, server_hostname="localhost")
            )
            await turns(MANY_TURNS)
            handshakes = opened.handshakes
            assert handshakes is not None
            assert handshakes.completed_count == 0
            _, writer = await connecting
            await reached(lambda: handshakes.completed_count == 1)
            writer.close()

    run(scenario())
