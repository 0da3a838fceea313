"""An HTTP server for GET /metrics, with the part of HTTP/1.1 (RFC 9112) that a scraper requires."""

import asyncio
import ssl
from collections.abc import Collection, Iterable
from contextlib import suppress
from http import HTTPStatus

from barnabas.base.hosts import is_own_host, own_names
from barnabas.telemetry.https import HttpsServer, listening
from barnabas.telemetry.metrics import CONTENT_TYPE, MetricsRegistry, exposition

REQUEST_SIZE_MAX_BYTES = 8192
CONNECTIONS_MAX = 32
LOOPBACK = "127.0.0.1"

_TEXT = "text/plain; charset=utf-8"


class MetricsServer:
    """Serves a registry's metrics at `listener`, "HOST:PORT"; port 0 is any free port, an empty host is loopback.

    Metrics are collected in the event loop's thread, which owns them, and rendered in another.
    `timeout_s` limits reading a request and writing its response. One request per connection.
    """

    def __init__(
        self,
        registry: MetricsRegistry,
        listener: str = ":0",
        hosts: Iterable[str] = (),
        timeout_s: float = 5.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """:param hosts: Further names by which scrapers may call this machine.
        :param tls: For HTTPS.
        """
        self._registry = registry
        self._hosts = own_names(hosts)
        self._host, self._port = parse_listener(listener)
        self._timeout_s = timeout_s
        self._tls = tls
        self._server: asyncio.Server | HttpsServer | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._server is not None, "not started"
        return self._port

    async def start(self) -> None:
        """Start to listen.

        :raises OSError: When the address is in use or does not belong to this machine.
        """
        assert self._server is None, "started twice"
        listener = listening(self._host, self._port)
        self._port = int(listener.getsockname()[1])
        if self._tls is None:
            self._server = await asyncio.start_server(
                self._serve, sock=listener, limit=REQUEST_SIZE_MAX_BYTES
            )
        else:
            self._server = HttpsServer(listener, self._new_protocol, self._tls, self._timeout_s)
            self._server.start()

    def _new_protocol(self) -> asyncio.Protocol:
        reader = asyncio.StreamReader(REQUEST_SIZE_MAX_BYTES)
        return asyncio.StreamReaderProtocol(reader, self._serve)

    async def close(self) -> None:
        """Stop listening and drop open connections."""
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(TimeoutError, ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                async with asyncio.timeout(self._timeout_s):
                    response = await self._answer(reader)
                async with asyncio.timeout(self._timeout_s):
                    writer.write(response)
                    writer.close()
                    await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            return response(
                status, f"The request is too large: at most {REQUEST_SIZE_MAX_BYTES} bytes are allowed.\n"
            )
        refusal = refuse_host(head, self._hosts) or refuse(head)
        if refusal is not None:
            return refusal
        families = self._registry.snapshot()
        body = await asyncio.to_thread(exposition, families)
        return response(HTTPStatus.OK, body, CONTENT_TYPE)


def parse_listener(listener: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; an IPv6 host is in brackets.

    :raises ValueError: If it does not have that form.
    """
    host, colon, port = listener.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        text = f"invalid metrics listener {listener!r}: expected HOST:PORT with a port from 0 to 65535"
        raise ValueError(text)
    return host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port)


def refuse_host(head: bytes, hosts: Collection[str]) -> bytes | None:
    """Return the response to a request for a foreign host, or None. A request without a Host header (HTTP/1.0) is not
    from a browser.
    """
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        host = value.strip().decode("latin-1")
        if name.strip().lower() == b"host" and not is_own_host(host, hosts):
            return response(HTTPStatus.MISDIRECTED_REQUEST, foreign_host(host))
    return None


def foreign_host(host: str) -> str:
    """Return the error message for an unknown name of this machine."""
    return f"{host!r} is not a known host name of this broker: add it to barnabas.console.hosts.\n"


def refuse(head: bytes) -> bytes | None:
    """Return the response to any request other than GET /metrics; None for that one."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return response(HTTPStatus.BAD_REQUEST, "Not a valid HTTP/1.1 request.\n")
    method, path = words[0], words[1].partition(b"?")[0]
    if path not in (b"/", b"/metrics"):
        return response(HTTPStatus.NOT_FOUND, "Not found: metrics are at /metrics.\n")
    if method != b"GET":
        return response(
            HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed: use GET.\n", extra="Allow: GET\r\n"
        )
    if path == b"/":
        return response(HTTPStatus.OK, "This is a Barnabas broker: its metrics are at /metrics.\n")
    return None


def response(status: HTTPStatus, body: bytes | str, content_type: str = _TEXT, extra: str = "") -> bytes:
    """Return a whole response, after which the connection closes; each line of `extra` ends in CRLF."""
    content = body.encode() if isinstance(body, str) else body
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n{extra}\r\n"
    )
    return head.encode() + content
