"""The console over HTTP: uvicorn in a thread of its own, or in the foreground."""

import asyncio
import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn

from barnabas.base.clock import Clock
from barnabas.client.address import Address
from barnabas.console.app import create_app
from barnabas.console.settings import ConsoleSettings

_START_S = 10.0
_STOP_S = 5.0


class ConsoleServer:
    """Serves a console at host and port, 0 for any free one, from a thread and an event loop of its own."""

    def __init__(
        self, settings: ConsoleSettings, host: str, port: int, *, clock: Clock | None = None
    ) -> None:
        self._host = host
        self._port = port
        self._started = threading.Event()
        config = uvicorn.Config(
            create_app(settings, clock),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            lifespan="on",
            ws="none",
        )
        self._server = _Server(config, self._started)
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def url(self) -> str:
        """Where browsers find it."""
        return f"http://{Address(self._host, self._port)}"

    def listen(self) -> None:
        """Take the port; who comes now waits until it is served.

        :raises OSError: When the address is in use or not of this machine.
        """
        self._socket = listening(self._host, self._port)
        self._port = self._socket.getsockname()[1]

    def start(self) -> None:
        """Listen, and serve from now on in another thread.

        :raises OSError: When the address is in use or not of this machine.
        """
        self.listen()
        self._thread = threading.Thread(target=self.run, name="barnabas-console", daemon=True)
        self._thread.start()
        self._started.wait(_START_S)

    def run(self) -> None:
        """Serve, after `listen`, until SIGINT or SIGTERM, or until another thread calls `stop`."""
        assert self._socket is not None, "not listening"
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        """End; waits for pages that are being made, for a while."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_S)
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: threading.Event) -> None:
        super().__init__(config)
        self._told = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and tell."""
        await super().startup(sockets)
        self._told.set()


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    :raises OSError: When the address is in use or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)
