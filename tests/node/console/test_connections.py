"""Browsers with many or slow connections."""

import asyncio
import socket

import httpx
import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.web.connections import BoundedConnection
from support.consoles import running_console

HEAD = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def connected(url: str) -> socket.socket:
    parts = httpx.URL(url)
    return socket.create_connection((parts.host, parts.port or 0), timeout=20)


def rest_of(connection: socket.socket) -> bytes:
    """Return the bytes until the other side closes."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"\r\n" + HEAD])
def test_an_incomplete_request_times_out(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(BoundedConnection, "head_s", 1.0)
    with running_console(kafka.bootstrap) as server, connected(server.url) as slow:
        slow.sendall(sent)
        answer = rest_of(slow)
        assert answer.count(b"HTTP/1.1 200") == (b"\r\n\r\n" in sent)


def test_connections_beyond_the_limit_are_closed(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "connections_max", 2)
    with running_console(kafka.bootstrap) as server:
        with connected(server.url) as first, connected(server.url) as second, connected(server.url) as third:
            assert rest_of(third) == b""
            for kept in (first, second):
                kept.sendall(HEAD + b"Connection: close\r\n\r\n")
                assert b"HTTP/1.1 200" in rest_of(kept)
        assert httpx.get(f"{server.url}/static/icon.svg").status_code == 200


def test_a_browser_that_leaves_amid_its_form_is_no_error(
    kafka: EmbeddedBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_console(kafka.bootstrap) as server:
        with connected(server.url) as leaving:
            parts = httpx.URL(server.url)
            head = f"POST /theme HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\nContent-Length: 10\r\n"
            head += "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
            leaving.sendall(head.encode() + b"theme")
        assert httpx.get(f"{server.url}/static/icon.svg").status_code == 200
        assert httpx.get(f"{server.url}/login", follow_redirects=True).status_code == 200
    assert "page failed" not in capfd.readouterr().err


def test_small_responses_are_sent_immediately(kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    is_prompt: list[int] = []
    begin = BoundedConnection.connection_made

    def watched(self: BoundedConnection, transport: asyncio.BaseTransport) -> None:
        begin(self, transport)
        own = transport.get_extra_info("socket")
        is_prompt.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(BoundedConnection, "connection_made", watched)
    with running_console(kafka.bootstrap) as server:
        httpx.get(f"{server.url}/static/icon.svg")
    assert all(is_prompt)
    assert is_prompt
