"""Serves an ASGI application: uvicorn on a bound socket, in this thread or in another."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from barnabas.client.core.address import BrokerAddress
from barnabas.telemetry.https import HttpsServer
from barnabas.web.connections import BoundedConnection

_GRACE_S = 0.4
_START_S = 10.0
_STOP_S = 5.0


class WebAppServer:
    """Serves an application: `run` in this thread, `start` and `stop`, or a with statement, in a thread of its own."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        *,
        name: str,
        https: ssl.SSLContext | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        """:param name: Of the thread.
        :param https: For HTTPS.
        :param trusted_proxies: Addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are trusted.
        """
        self._socket = listener
        self._name = name
        self._scheme = "http" if https is None else "https"
        self._started = threading.Event()
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,  # type: ignore[arg-type]  # a timeout of asyncio
            http=BoundedConnection,
            lifespan="on",
            ws="none",
            proxy_headers=bool(trusted_proxies),  # without them uvicorn would trust 127.0.0.1
            forwarded_allow_ips=list(trusted_proxies),
        )
        self._server = _Server(config, self._started, https)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://{BrokerAddress(host, port)}"

    def start(self) -> None:
        """Start to serve in another thread."""
        self._thread = threading.Thread(target=self.run, name=self._name, daemon=True)
        self._thread.start()
        self._started.wait(_START_S)

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, or until another thread calls `stop`."""
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        """Stop; requests in progress get a short time to finish."""
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
