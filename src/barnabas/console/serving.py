"""The console over HTTP, with a broker's metrics beside it."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.base.clock import Clock
from barnabas.base.hosts import is_own_host, own_names
from barnabas.console.app import create_app
from barnabas.console.settings import ConsoleSettings
from barnabas.telemetry.http import foreign_host
from barnabas.telemetry.metrics import CONTENT_TYPE
from barnabas.web.serving import WebAppServer

_SCRAPE_S = 10.0

Scrape = Callable[[], "Future[bytes]"]


class ConsoleServer(WebAppServer):
    """Serves a console."""

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
        app: ASGIApp = create_app(settings, clock)
        super().__init__(
            app if scrape is None else _BesideMetrics(app, scrape, settings.hosts),
            listener,
            name="barnabas-console",
            https=https,
            trusted_proxies=settings.trusted_proxies,
        )


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
