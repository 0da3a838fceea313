"""One broker and a raw connection to it: a request is sent; a response, the end of the connection, or nothing comes
back.
"""

import itertools
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.wire.codec import encode, reader
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Message

ANSWER_TIMEOUT_S = 10.0
CLIENT_ID = b"differential"

_HEADER = struct.Struct(">hhih")


@dataclass(frozen=True)
class Answer:
    """The result of a request."""

    outcome: str  #: "answered", "closed", "nothing" (expected with acks=0) or "timed out"
    body: Message | None = None


@dataclass
class Side:
    """One of the two brokers. Its connection is reopened after the broker has closed it."""

    name: str
    bootstrap: str
    source: str = ""  #: the source address, where it matters
    home: Path = Path("/")  #: path of its log directories
    _connection: socket.socket | None = None
    _correlation_ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def exchange(self, request: Message, response: type[Message], version: int) -> Answer:
        """Send `request` and decode the response.

        With acks=0 none is expected: a second request finds out whether the connection is still open.
        """
        correlation_id = next(self._correlation_ids)
        wants_no_answer = isinstance(request, ProduceRequest) and request.acks == 0
        try:
            self.send(frame(request, version, correlation_id))
            if wants_no_answer:
                return self._probe()
            return Answer("answered", parse_answer(self.receive(), response, version, correlation_id))
        except ConnectionClosed:
            return Answer("closed")
        except TimeoutError:
            self.disconnect()
            return Answer("timed out")

    def exchange_bytes(self, sent: bytes) -> bytes | str:
        """Send bytes on a new connection; return the response frame, or how the connection ended."""
        self.disconnect()
        try:
            self.send(sent)
            return self.receive()
        except ConnectionClosed:
            return "closed"
        except TimeoutError:
            return "timed out"
        finally:
            self.disconnect()

    def _probe(self) -> Answer:
        correlation_id = next(self._correlation_ids)
        self.send(frame(ApiVersionsRequest(), 0, correlation_id))
        parse_answer(self.receive(), ApiVersionsResponse, 0, correlation_id)
        return Answer("nothing")

    def send(self, data: bytes) -> None:
        if self._connection is None:
            self._connection = self.connect()
            self.log_in()
        try:
            self._connection.sendall(data)
        except ConnectionError as error:
            self.disconnect()
            raise ConnectionClosed from error

    def connect(self) -> socket.socket:
        """Open a connection."""
        host, _, port = self.bootstrap.rpartition(":")
        source = (self.source, 0) if self.source else None
        connection = socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S, source)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def log_in(self) -> None:
        """Log in on a connection that was opened, where the listener wants it."""

    def receive(self) -> bytes:
        """Return the next frame, without its size."""
        (size_bytes,) = struct.unpack(">i", self._read(4))
        return self._read(size_bytes)

    def _read(self, size_bytes: int) -> bytes:
        assert self._connection is not None
        received = bytearray()
        while len(received) < size_bytes:
            try:
                chunk = self._connection.recv(size_bytes - len(received))
            except ConnectionError:
                chunk = b""
            if not chunk:
                self.disconnect()
                raise ConnectionClosed
            received += chunk
        return bytes(received)

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ConnectionClosed(Exception):
    """The broker has closed the connection."""


def frame(request: Message, version: int, correlation_id: int) -> bytes:
    """Encode a request with size, header and body."""
    header = _HEADER.pack(request.API_KEY, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    if version in request.FLEXIBLE:
        header += b"\x00"
    body = header + bytes(encode(request, version))
    return struct.pack(">i", len(body)) + body


def parse_answer(data: bytes, response: type[Message], version: int, correlation_id: int) -> Message:
    """Decode the response's body, which must use every byte."""
    assert struct.unpack_from(">i", data)[0] == correlation_id, (response, data)
    position = 4
    if version in response.FLEXIBLE and response is not ApiVersionsResponse:
        assert data[position] == 0, (response, data)
        position += 1
    body, end = reader(response, version)(data, position, None)
    assert end == len(data), (response, version, data, end)
    assert isinstance(body, response)
    return body
