"""A socket that sends frames and waits for their responses."""

import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

TIMEOUT_S = 120.0


class FrameClient:
    """Sends a frame that the caller has encoded, and waits for its response."""

    def __init__(self, bootstrap: str, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        """Send a frame without waiting."""
        self.send_all(len(frame).to_bytes(4, "big") + frame)

    def send_all(self, data: bytes) -> None:
        """Send bytes unchanged; a broker that closes meanwhile is noticed when its response is read."""
        with suppress(ConnectionError):
            self.socket.sendall(data)

    def receive(self) -> int | None:
        """Return the size of the next response, which is discarded; None if the connection closes or none arrives."""
        try:
            head = self._read(4)
            left = size = int.from_bytes(head, "big")
            while left:
                left -= len(self._some(min(left, 1 << 20)))
        except (EOFError, ConnectionError, TimeoutError):
            return None
        return size

    def receive_bytes(self) -> bytes:
        """Return the next response without its size."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def ask(self, frame: bytes) -> int | None:
        """Send a frame; return the size of its response, None if the connection is closed instead."""
        self.send(frame)
        return self.receive()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._some(count - len(data))
        return data

    def _some(self, count: int) -> bytes:
        more = self.socket.recv(count)
        if not more:
            raise EOFError
        return more

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
