"""The console of a broker, with its metrics, on a thread and an event loop of its own.

This module imports nothing expensive: the thread does that while the broker continues to start.
"""

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

from barnabas.console.settings import ConsoleSettings
from barnabas.server.web import Site
from barnabas.telemetry.https import listening
from barnabas.telemetry.logs import get_logger

if TYPE_CHECKING:
    from barnabas.console.serving import ConsoleServer

_log = get_logger("barnabas.console")

_STOP_S = 5.0


class EmbeddedConsole:
    """Serves a broker's console and metrics (`barnabas.server.web.WebServer`)."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._socket: socket.socket | None = None
        self._port: int | None = None
        self._thread: threading.Thread | None = None
        self._server: ConsoleServer | None = None
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._port is not None, "not started"
        return self._port

    async def start(self) -> None:
        """Listen; requests wait until everything is imported.

        :raises OSError: When the address is in use or does not belong to this machine.
        """
        self._socket = listening(self._site.host, self._site.port)
        self._port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._run, name="barnabas-console", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Stop; pages in progress get a short time to finish."""
        if self._thread is None:
            return
        self._stopping.set()
        if self._server is not None:
            self._server.stop()
        await asyncio.to_thread(self._thread.join, _STOP_S)

    def _run(self) -> None:
        assert self._socket is not None
        try:
            self._serve(self._socket)
        except Exception:  # the broker continues without a console
            _log.exception("console ended")
        finally:
            self._socket.close()  # browsers and scrapers are refused instead of waiting

    def _serve(self, listener: socket.socket) -> None:
        from barnabas.console.serving import ConsoleServer

        site = self._site
        settings = ConsoleSettings(
            site.bootstrap,
            read_only=site.read_only,
            tls=site.tls,
            hosts=site.hosts,
            trusted_proxies=site.trusted_proxies,
        )
        self._server = ConsoleServer(settings, listener, scrape=site.scrape, https=site.https)
        if not self._stopping.is_set():
            self._server.run()
