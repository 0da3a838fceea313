"""The console over HTTP: uvicorn on a bound socket, in this thread or in another."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Self

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.base.clock import Clock
from barnabas.base.hosts import is_own_host, own_names
from barnabas.client.core.address import BrokerAddress
from barnabas.console.app import create_app
from barnabas.console.connections import BoundedConnection
from barnabas.console.settings import ConsoleSettings
from barnabas.telemetry.http import foreign_host
from barnabas.telemetry.https import HttpsServer
from barnabas.telemetry.metrics import CONTENT_TYPE

_GRACE_S = 0.4
_START_S = 10.0
_STOP_S = 5.0
_SCRAPE_S = 10.0

Scrape = Callable[[], "Future[bytes]"]


class ConsoleServer:
    """Serves a console: `run` in this thread, `start` and `stop`, or a with statement, in a thread of its own."""

    def __init__(
        self,
        settings: ConsoleSettings,
        listener: socket.socket,
        *,
        clock: Clock | None = None,
        scrape: Scrape | None = None,
        https: ssl.SSLContext | None = None,
    ) -> None:
        """:param scrape: Returns the response of /metrics; called from this server's thread.
        :param https: For HTTPS.
        """
        self._socket = listener
        self._scheme = "http" if https is None else "https"
        self._started = threading.Event()
        app: ASGIApp = create_app(settings, clock)
        config = uvicorn.Config(
            app if scrape is None else _BesideMetrics(app, scrape, settings.hosts),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,  # type: ignore[arg-type]  # a timeout of asyncio
            http=BoundedConnection,
            lifespan="on",
            ws="none",
            proxy_headers=bool(settings.trusted_proxies),  # without them uvicorn would trust 127.0.0.1
            forwarded_allow_ips=list(settings.trusted_proxies),
        )
        self._server = _Server(config, self._started, https)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://{BrokerAddress(host, port)}"

    def start(self) -> None:
        """Start to serve in another thread."""
        self._thread = threading.Thread(target=self.run, name="barnabas-console", daemon=True)
        self._thread.start()
        self._started.wait(_START_S)

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, or until another thread calls `stop`."""
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        """Stop; pages in progress get a short time to finish."""
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
    def __init__(
        self, config: uvicorn.Config, started: threading.Event, https: ssl.SSLContext | None
    ) -> None:
        super().__init__(config)
        self._started = started
        self._https = https

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, and signal it."""
        assert sockets is not None
        if self._https is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            servers = [HttpsServer(listener, self._new_connection, self._https) for listener in sockets]
            for server in servers:
                server.start()
            self.servers = servers  # type: ignore[assignment]  # uvicorn only closes them
        self._started.set()

    def _new_connection(self) -> asyncio.Protocol:
        return BoundedConnection(self.config, self.server_state, self.lifespan.state)


class _BesideMetrics:
    """A console with /metrics beside it: without login or session, for the same hosts."""

    def __init__(self, app: ASGIApp, scrape: Scrape, hosts: Iterable[str]) -> None:
        self._app = app
        self._scrape = scrape
        self._hosts = own_names(hosts)
        self._scraping: asyncio.Future[bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request (ASGI)."""
        if scope["type"] != "http" or scope["path"] != "/metrics":
            await self._app(scope, receive, send)
            return
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        if not is_own_host(host, self._hosts):
            return PlainTextResponse(foreign_host(host), 421)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET is served.\n", 405, headers={"Allow": "GET"})
        try:
            async with asyncio.timeout(_SCRAPE_S):
                metrics = await asyncio.shield(self._shared())
        except TimeoutError:
            return PlainTextResponse("The broker is too busy to collect its metrics.\n", 503)
        return Response(metrics, headers={"Content-Type": CONTENT_TYPE})

    def _shared(self) -> "asyncio.Future[bytes]":
        """One scrape for all requests at the same time: many scrapers cost the broker no more than one."""
        if self._scraping is None or self._scraping.done():
            self._scraping = asyncio.wrap_future(self._scrape())
        return self._scraping
