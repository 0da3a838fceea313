"""A socket that sends frames and waits for their answers."""

import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

TIMEOUT_S = 120.0


class FrameClient:
    """Sends one frame and waits for its answer; what it sends, the caller has made."""

    def __init__(self, bootstrap: str, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        """Send a frame without waiting."""
        self.send_all(len(frame).to_bytes(4, "big") + frame)

    def send_all(self, data: bytes) -> None:
        """Send bytes as they are; a broker that closes meanwhile is noticed when its answer is read."""
        with suppress(ConnectionError):
            self.socket.sendall(data)

    def receive(self) -> int | None:
        """The size of the next answer, which is thrown away; None when the connection closes, or none comes."""
        try:
            head = self._read(4)
            left = size = int.from_bytes(head, "big")
            while left:
                left -= len(self._some(min(left, 1 << 20)))
        except (EOFError, ConnectionError, TimeoutError):
            return None
        return size

    def receive_bytes(self) -> bytes:
        """The next answer without its size."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def ask(self, frame: bytes) -> int | None:
        """Send a frame; the size of its answer, None when the connection is closed instead."""
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
        """Close the socket."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
