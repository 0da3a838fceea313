"""Serves an application in the process of a broker, on a thread and an event loop of its own.

This module imports nothing expensive: the thread does that while the broker continues to start.
"""

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

from barnabas.telemetry.https import listening
from barnabas.telemetry.logs import get_logger

if TYPE_CHECKING:
    from barnabas.web.serving import WebAppServer

_log = get_logger("barnabas.web")

_STOP_S = 5.0


class EmbeddedWebApp:
    """An application of which subclasses create the server."""

    def __init__(self, name: str, host: str, port: int) -> None:
        """:param name: Of the thread, and in the log."""
        self._name = name
        self._address = (host, port)
        self._socket: socket.socket | None = None
        self._port: int | None = None
        self._thread: threading.Thread | None = None
        self._server: WebAppServer | None = None
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._port is not None, "not started"
        return self._port

    def create_server(self, listener: socket.socket) -> "WebAppServer":
        """Import and create the server, in its own thread."""
        raise NotImplementedError

    async def start(self) -> None:
        """Listen; requests wait until everything is imported.

        :raises OSError: When the address is in use or does not belong to this machine.
        """
        self._socket = listening(*self._address)
        self._port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Stop; requests in progress get a short time to finish."""
        if self._thread is None:
            return
        self._stopping.set()
        if self._server is not None:
            self._server.stop()
        await asyncio.to_thread(self._thread.join, _STOP_S)

    def _run(self) -> None:
        assert self._socket is not None
        try:
            self._server = self.create_server(self._socket)
            if not self._stopping.is_set():
                self._server.run()
        except Exception:  # the broker continues without it
            _log.exception("a web application ended", name=self._name)
        finally:
            self._socket.close()  # clients are refused instead of waiting
