"""A proxy before a broker that can hold one request, so that its client can be killed meanwhile."""

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from barnabas.client.core.loop_thread import LoopThread
from support.waiting import WAIT_S


@dataclass
class Hold:
    """Holds the `number`-th request of an API without a response. `is_forwarded`: the broker still receives it."""

    api_key: int
    number: int
    is_forwarded: bool
    arrived: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Wait until the request has arrived."""
        assert self.arrived.wait(WAIT_S), "the request did not come"

    def matches(self, frame: bytes) -> bool:
        """Count a frame; return whether it is the request to hold."""
        self.number -= int.from_bytes(frame[:2]) == self.api_key
        return self.number == 0


class HoldingProxy:
    """Listens on a port of 127.0.0.1 that a broker advertises, and forwards to the broker's own port."""

    def __init__(self, port: int, broker_port: int) -> None:
        self._port, self._broker_port = port, broker_port
        self._hold: Hold | None = None
        self._loop = LoopThread("holding-proxy")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def hold(self, api_key: int, number: int = 1, *, is_forwarded: bool) -> Hold:
        """Hold one request from now on, in place of any earlier one."""
        self._hold = Hold(api_key, number, is_forwarded)
        return self._hold

    def __enter__(self) -> Self:
        self._loop.run(asyncio.start_server(self._serve, "127.0.0.1", self._port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        passing = asyncio.ensure_future(_pass_on(answers, writer))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(size))
                held = self._hold if self._hold is not None and self._hold.matches(frame) else None
                if held is not None:
                    await _ended(passing)
                if held is None or held.is_forwarded:
                    broker.write(size + frame)
                    await broker.drain()
                if held is not None:
                    if held.is_forwarded:
                        await answers.readexactly(4)
                    held.arrived.set()
        await _ended(passing)
        broker.close()
        writer.close()


async def _pass_on(answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await answers.read(65536):
            writer.write(data)
            await writer.drain()


async def _ended(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
