"""One HTTP/1.1 connection to a member of etcd: JSON requests one after another, or one stream of JSON lines."""

import asyncio
import socket
import ssl
from typing import Any, NamedTuple

import h11

from barnabas.base.os_errors import reason_of
from barnabas.tls.failures import refuses_certificate, server_failure_reason

#: A larger answer, or line of a stream, ends the connection. etcd itself accepts requests of 1.5 MiB by default.
ANSWER_BYTES_MAX = 64 << 20

#: A stream whose other side is gone ends after about this time: no request shows it. Not all systems can set all of it.
KEEPALIVE_IDLE_S = 5
KEEPALIVE_INTERVAL_S = 2
KEEPALIVE_PROBES_COUNT = 3

_READ_BYTES = 64 << 10
_STATUS_OK = 200


class NotSent(Exception):
    """There is no connection, or etcd has refused the request: nothing was changed."""


class NoAnswer(Exception):
    """The request was sent, and its outcome is unknown."""


class EtcdEndpoint(NamedTuple):
    """The client address of a member; prints as a URL."""

    host: str
    port: int
    is_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"


class HttpConnection:
    """A connection that is open; it must be closed."""

    def __init__(
        self,
        endpoint: EtcdEndpoint,
        tls: ssl.SSLContext | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.tls = tls
        self._endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)
        self._line = bytearray()  #: the part of the next line of a stream that has come
        self.received_count = 0  #: bytes that have come

    @staticmethod
    async def open(endpoint: EtcdEndpoint, tls: ssl.SSLContext | None, timeout_s: float) -> "HttpConnection":
        """:raises NotSent: If the member does not accept the connection in time."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    endpoint.host, endpoint.port, ssl=tls if endpoint.is_tls else None
                )
        except TimeoutError:
            raise NotSent(f"no connection within {timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise NotSent(server_failure_reason(error)) from error
        except OSError as error:
            raise NotSent(reason_of(error)) from error
        return HttpConnection(endpoint, tls, reader, writer)

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent, as far as this side knows."""
        is_idle = self._http.our_state is h11.IDLE and self._http.their_state is h11.IDLE
        return is_idle and not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        self._writer.close()

    async def post(self, path: str, body: bytes, token: str | None) -> tuple[int, bytes]:
        """Send a request; return the status and the body.

        :raises NoAnswer: If the connection ends before the answer, or what comes is not HTTP.
        """
        status = await self._send(path, body, token)
        response = bytearray()
        while data := await self._receive():
            response += data
            if len(response) > ANSWER_BYTES_MAX:
                raise NoAnswer(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return status, bytes(response)

    async def start_stream(self, path: str, body: bytes, token: str | None) -> None:
        """Send a request whose answer is a stream, which `next_line` returns.

        :raises NoAnswer: If the connection ends before the answer, or the answer is an error.
        """
        _keep_alive(self._writer.get_extra_info("socket"))
        status = await self._send(path, body, token)
        if status != _STATUS_OK:
            raise NoAnswer(f"HTTP status {status}: {(await self._receive())[:200]!r}")

    async def next_line(self) -> bytes:
        """Return the next line. If this is cancelled, nothing is lost.

        :raises NoAnswer: If the stream ends.
        """
        searched = 0
        while (end := self._line.find(b"\n", searched)) < 0:
            searched = len(self._line)
            data = await self._receive()
            if not data:
                raise NoAnswer("the stream has ended")
            self._line += data
            if len(self._line) > ANSWER_BYTES_MAX:
                raise NoAnswer(f"a line of more than {ANSWER_BYTES_MAX} bytes")
        line = bytes(self._line[:end])
        del self._line[: end + 1]
        return line

    async def _send(self, path: str, body: bytes, token: str | None) -> int:
        headers = [
            ("Host", str(self._endpoint).partition("://")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            *([("Authorization", token)] if token else []),
        ]
        request = h11.Request(method="POST", target=path, headers=headers)
        parts = (self._http.send(part) for part in (request, h11.Data(data=body), h11.EndOfMessage()))
        try:
            self._writer.write(b"".join(part or b"" for part in parts))
            await self._writer.drain()
        except OSError as error:
            raise _failure(error) from error
        while not isinstance(event := await self._next_event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise NoAnswer("the connection was closed")
        return event.status_code

    async def _receive(self) -> bytes:
        """Return the next part of the body; empty at its end."""
        event = await self._next_event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next_event(self) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = await self._reader.read(_READ_BYTES)
                self.received_count += len(data)
                self._http.receive_data(data)
        except (OSError, h11.RemoteProtocolError) as error:
            raise _failure(error) from error
        return event


def _keep_alive(connected: socket.socket) -> None:
    """Let the system probe a connection on which nothing is sent."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPALIVE", KEEPALIVE_IDLE_S),  # macOS
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES_COUNT),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _failure(error: Exception) -> NotSent | NoAnswer:
    """Return what the failure of an open connection means for its request."""
    if isinstance(error, ssl.SSLError) and refuses_certificate(error):
        return NotSent(server_failure_reason(error))
    return NoAnswer(str(error))
