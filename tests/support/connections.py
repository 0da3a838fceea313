"""One connection between a fake transport and a fake dispatcher."""

import asyncio
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from barnabas.api.dispatch import RequestRejectedError
from barnabas.base import eager
from barnabas.base.clock import ManualClock
from barnabas.base.turns import Turns
from barnabas.net.connection import ServerConnection
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.policy.policies import Policies
from barnabas.telemetry.requests import RequestStatistics
from support.loop import turns

FRAME_BYTES_MAX = 5_000_000

#: How long a client of `throttle:text` is muted.
THROTTLE_MS = 20
PART_BYTES = 512 << 10


class Transport(asyncio.Transport):
    """A fake transport that records writes and calls."""

    def __init__(self, *, uses_tls: bool = False) -> None:
        super().__init__({"peername": ("10.0.0.1", 4321), "ssl_object": "tls" if uses_tls else None})
        self.out = bytearray()
        self.writes: list[str] = []
        self.closed = self.aborted = False
        self.reading = True
        self.buffered_bytes = 77
        self.after_write: Callable[[], None] = lambda: None
        self.after_writelines: Callable[[], None] = lambda: None

    def write(self, data: Any) -> None:
        self.out += data
        self.writes.append("write")
        self.after_write()

    def writelines(self, data: Any) -> None:
        for each in data:
            self.out += each
        self.writes.append("writelines")
        self.after_writelines()

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes


class Context:
    """The part of a request's context that a connection needs."""

    def __init__(self, request: str) -> None:
        self.close_after = request.startswith("close:")
        self.throttle_ms = THROTTLE_MS if request.startswith("throttle:") else 0
        self.needs_task = not request.startswith("wait:")
        self.api = SimpleNamespace(audit=list if request.startswith("change:") else None)


class Dispatcher:
    """Interprets frames of the form `how:text`, and answers with `text;`.

    `once` has a fast path; all other requests are answered by a coroutine.
    """

    def __init__(self, clock: ManualClock, delay_ms: int = 0) -> None:
        self.delay_ms = delay_ms  #: from this number on, new connections are closed; 0: no limit
        self.statistics = RequestStatistics()
        self.clock = clock
        self.records = memoryview(b"")  #: the response to `records:`
        self.ms_per_request = 0  #: duration of each request with a fast path
        self.broker = SimpleNamespace(turns=Turns(self.clock.monotonic_ns), policies=Policies())
        self.waiting: dict[str, asyncio.Future[None]] = {}
        self.started: list[str] = []
        self.cancelled: list[str] = []

    def start(
        self, frame: memoryview, info: object
    ) -> tuple[Context, "list[bytes] | asyncio.Future[list[bytes] | None] | None"]:
        text = bytes(frame).decode()
        if text.startswith("bad:"):
            raise RequestRejectedError("bad request", text[4:].encode() or None)
        if text.startswith("once:"):
            self.started.append(text[5:])
            self.clock.advance(self.ms_per_request)
            return Context(text), [text[5:].encode(), b";"]
        context = Context(text)
        return context, eager.start(self.answer(context, text), needs_task=context.needs_task)

    def count_connection(self, host: str) -> int:
        return self.delay_ms

    async def answer(self, context: Context, request: str) -> list[bytes] | None:
        how, _, text = request.partition(":")
        self.started.append(text)
        if how in ("wait", "change"):
            self.waiting[text] = asyncio.get_running_loop().create_future()
            try:
                await self.waiting[text]
            except asyncio.CancelledError:
                self.cancelled.append(text)
                raise
        if how == "twice":
            await turns(2)
        if how == "large":
            return [b"x" * int(text), b";"]
        if how == "parts":
            return [b"x" * PART_BYTES] * int(text)
        if how == "records":
            return [self.records]
        return None if how in ("none", "close") else [text.encode(), b";"]

    def release(self, text: str) -> None:
        self.waiting[text].set_result(None)


class Client:
    """One connection with its fake transport, dispatcher and owner."""

    def __init__(
        self,
        *,
        delay_ms: int = 0,
        sasl: Any = None,
        reads_slowly: bool = False,
        uses_tls: bool = False,
        **options: Any,
    ) -> None:
        """Connect.

        :param sasl: Stands for a SaslServer; None if no login is needed.
        :param reads_slowly: The transport's buffer is full after each `writelines`.
        """
        self.clock = ManualClock(0)
        options = {
            "frame_bytes_max": FRAME_BYTES_MAX,
            "limits": ConnectionLimits(10),
            "idle_ms_max": 1000,
            **options,
        }
        self.connections = Connections(self.clock, **options)
        self.dispatcher = Dispatcher(self.clock, delay_ms)
        duck: Any = self.dispatcher
        self.connection = ServerConnection(duck, "PLAINTEXT", self.connections, sasl)
        self.transport = Transport(uses_tls=uses_tls)
        self.connection.connection_made(self.transport)
        if reads_slowly:
            self.transport.after_writelines = self.connection.pause_writing

    def send(self, *requests: str) -> None:
        """Send requests that arrive in one turn of the loop."""
        self.send_bytes(b"".join(struct.pack(">i", len(each)) + each.encode() for each in requests))

    def send_bytes(self, data: bytes) -> None:
        while data:
            buffer = self.connection.get_buffer(-1)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]
        self.connections.send_all()

    async def release(self, text: str) -> None:
        self.dispatcher.release(text)
        await turns(3)

    @property
    def received(self) -> list[str]:
        return self.transport.out.decode().split(";")[:-1]
