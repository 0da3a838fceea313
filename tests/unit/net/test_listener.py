import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from barnabas.base.clock import ManualClock
from barnabas.config.listeners import Listener
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.net.listener import BACKLOG_COUNT, NetworkListener, StartError, backlog
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from support.loop import on_loop
from support.nodes import RunningNode, config_of, frame_of, response_of, running_node


def listener_at(host: str = "127.0.0.1", port: int = 0, protocol: str = "PLAINTEXT") -> Listener:
    config = config_of(Path("/data"), listeners=f"{protocol}://{host}:{port}")
    return config.listeners[0]


def opened_by(node: RunningNode, listener: Listener) -> NetworkListener:
    connections = Connections(ManualClock(), frame_bytes_max=1000, limits=ConnectionLimits(5), idle_ms_max=-1)
    return NetworkListener(listener, node.broker.config, node.dispatcher, connections)


@asynccontextmanager
async def serving(node: RunningNode, listener: Listener) -> AsyncIterator[NetworkListener]:
    opened = opened_by(node, listener)
    await opened.start()
    await opened.accept()
    try:
        yield opened
    finally:
        opened._connections.abort_all()
        await opened.stop()


async def exchange(opened: NetworkListener, data: bytes) -> bytes:
    """Return everything that is received until the broker closes or one complete response has arrived."""
    reader, writer = await asyncio.open_connection(*opened.address)
    writer.write(data)
    try:
        head = await asyncio.wait_for(reader.read(4), 10)
        if not head:
            return b""
        return head + await reader.readexactly(int.from_bytes(head, "big"))
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("settings", "expected"), [({}, BACKLOG_COUNT), ({"socket.listen.backlog.size": "50"}, 50)]
)
def test_the_accept_backlog_is_large_by_default(settings: dict[str, str], expected: int) -> None:
    assert backlog(config_of(Path("/data"), **settings)) == expected


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_request_is_answered_over_a_socket(tmp_path: Path, loop_factory: type) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, serving(node, listener_at()) as opened:
            frame = frame_of(MetadataRequest(topics=[]), 12)
            answer = await exchange(opened, len(frame).to_bytes(4, "big") + frame)
            assert response_of(MetadataResponse, 12, answer).error_code == 0
            assert opened.name == "PLAINTEXT"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_when_a_broker_stops_only_connections_without_a_response_are_reset(
    tmp_path: Path, loop_factory: type
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, serving(node, listener_at()) as opened:
            silent, silent_writer = await asyncio.open_connection(*opened.address)
            answered, writer = await asyncio.open_connection(*opened.address)
            frame = frame_of(MetadataRequest(topics=[]), 12)
            writer.write(len(frame).to_bytes(4, "big") + frame)
            await answered.readexactly(int.from_bytes(await answered.readexactly(4), "big"))
            opened._connections.abort_all()
            with pytest.raises(ConnectionResetError):
                await silent.read()
            assert await answered.read() == b""
            silent_writer.close()
            writer.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())


@on_loop
async def test_a_frame_that_is_too_large_closes_its_connection_and_others_are_served(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node, serving(node, listener_at()) as opened:
        assert await exchange(opened, (1001).to_bytes(4, "big") + b"x" * 100) == b""
        frame = frame_of(MetadataRequest(topics=[]), 12)
        assert await exchange(opened, len(frame).to_bytes(4, "big") + frame)


@on_loop
async def test_no_connection_is_served_before_the_broker_accepts(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        opened = opened_by(node, listener_at())
        await opened.start()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*opened.address)
        await opened.stop()


@on_loop
async def test_a_port_in_use_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with running_node(tmp_path) as node:
            opened = opened_by(node, listener_at(port=port))
            with pytest.raises(
                StartError, match=rf"Cannot listen on 127\.0\.0\.1:{port}: Address already in use"
            ):
                await opened.start()
            await opened.stop()


@on_loop
async def test_a_foreign_host_is_an_error_with_its_name(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        opened = opened_by(node, listener_at(host="192.0.2.1"))
        with pytest.raises(StartError, match=r"192\.0\.2\.1:0: .*--listen"):
            await opened.start()


@on_loop
async def test_clients_get_the_bound_port(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node, serving(node, listener_at()) as opened:
        host, port = opened.address
        assert (host, port > 0) == ("127.0.0.1", True)
        assert opened.advertised == ("127.0.0.1", port)


@on_loop
async def test_clients_get_the_advertised_address(tmp_path: Path) -> None:
    config = config_of(tmp_path, advertised_listeners="PLAINTEXT://broker.example:1234")
    async with running_node(tmp_path) as node, serving(node, config.listeners[0]) as opened:
        assert opened.advertised == ("broker.example", 1234)


@on_loop
async def test_a_stopped_listener_accepts_no_connections(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        async with serving(node, listener_at()) as opened:
            address = opened.address
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        await opened.stop()
