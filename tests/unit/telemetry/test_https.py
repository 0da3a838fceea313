"""Clients that connect and do not shake hands, over real sockets: the event loops differ in how they accept."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import pytest
import uvloop

from barnabas.telemetry import https
from barnabas.telemetry.https import HANDSHAKES_MAX, HttpsServer, listening
from barnabas.tls.contexts import client_context, server_context
from support.tls import AUTHORITY, TLS, with_keys
from support.waiting import reached

KEYS = with_keys(AUTHORITY.issue())
LONG_S = 60.0

Scenario = Coroutine[Any, Any, None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    def run_on_loop(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario)

    return run_on_loop


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)  # uvloop's is another type

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Client(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def connect(cls, port: int, tls: ssl.SSLContext | None = None) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))

    @property
    def is_ended(self) -> bool:
        """Whether the server has ended the connection."""
        return self.reader.at_eof() or self.reader.exception() is not None

    async def gets_echo(self) -> bool:
        self.writer.write(b"hello")
        return await self.reader.readexactly(5) == b"hello"


class Running(NamedTuple):
    server: HttpsServer
    port: int
    clients: list[Client]

    async def connect(self, tls: ssl.SSLContext | None = None) -> Client:
        self.clients.append(await Client.connect(self.port, tls))
        return self.clients[-1]


@asynccontextmanager
async def running(listener: socket.socket | None = None, timeout_s: float = LONG_S) -> AsyncIterator[Running]:
    listener = listener or listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = HttpsServer(listener, Echo, server_context(KEYS), timeout_s)
    server.start()
    started = Running(server, port, [])
    try:
        yield started
    finally:
        for _, writer in started.clients:
            writer.transport.abort()
        server.close()
        await server.wait_closed()


def test_the_oldest_handshakes_are_given_up_for_newer_ones(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        async with running() as started:
            silent = [await started.connect() for _ in range(HANDSHAKES_MAX + 5)]
            await reached(lambda: all(client.is_ended for client in silent[:5]))
            assert not any(client.is_ended for client in silent[5:])
            client = await started.connect(client_context(TLS))
            assert await client.gets_echo()
            await reached(lambda: silent[5].is_ended)
            assert not any(client.is_ended for client in silent[6:])

    run(scenario())


def test_complete_connections_do_not_count(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        async with running() as started:
            context = client_context(TLS)
            complete = [await started.connect(context) for _ in range(HANDSHAKES_MAX + 1)]
            silent = await started.connect()
            assert all([await client.gets_echo() for client in complete])
            assert not silent.is_ended

    run(scenario())


def test_a_client_without_a_handshake_is_given_up_after_some_time(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        async with running(timeout_s=0.05) as started:
            silent, halfway = await started.connect(), await started.connect()
            halfway.writer.write(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a client's first message
            await reached(lambda: silent.is_ended and halfway.is_ended)

    run(scenario())


def test_a_client_that_does_not_use_tls_is_disconnected_at_once(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        async with running() as started:
            plain = await started.connect()
            plain.writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reached(lambda: plain.is_ended)

    run(scenario())


def test_closing_ends_handshakes_and_keeps_complete_connections(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        async with running() as started:
            silent = await started.connect()
            complete = await started.connect(client_context(TLS))
            assert await complete.gets_echo()
            started.server.close()
            await started.server.wait_closed()
            await reached(lambda: silent.is_ended)
            assert await complete.gets_echo()
            with pytest.raises(ConnectionRefusedError):
                await started.connect()

    run(scenario())


class FullTable(socket.socket):
    """A listening socket of a process that has too many files open, once."""

    refused_count = 0

    def accept(self) -> tuple[socket.socket, Any]:
        if self.refused_count == 0:
            self.refused_count += 1
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


def test_accepting_goes_on_after_an_error(
    run: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https, "ACCEPT_PAUSE_S", 0.0)
    listener = FullTable(fileno=listening("127.0.0.1", 0).detach())

    async def scenario() -> None:
        async with running(listener) as started:
            client = await started.connect(client_context(TLS))
            assert await client.gets_echo()
            assert listener.refused_count == 1

    run(scenario())
