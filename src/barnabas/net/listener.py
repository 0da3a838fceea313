"""A listener: one address on which clients connect."""

import asyncio
import socket

from barnabas.api.dispatch import Dispatcher
from barnabas.base.os_errors import reason_of
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.listeners import Listener
from barnabas.net.connection import ServerConnection
from barnabas.net.connections import Connections
from barnabas.net.handshakes import Handshakes
from barnabas.net.tls_transport import TlsConnection
from barnabas.security.sasl.server import SaslServer
from barnabas.security.tls_server import TlsServer

#: Connections that may wait to be accepted, unless it is configured. Kafka's default suits a thread that only accepts;
#: here one thread does everything, and a rejected client retries only after a second.
BACKLOG_COUNT = 1024


def backlog(config: BrokerConfig) -> int:
    key = "socket.listen.backlog.size"
    return config.integer(key) if config.is_set(key) else BACKLOG_COUNT


class StartError(Exception):
    """The broker cannot start as configured. The message is for the operator."""


class NetworkListener:
    """One listening socket. `start` binds it, `accept` begins to serve."""

    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        dispatcher: Dispatcher,
        connections: Connections,
        sasl: SaslServer | None = None,
        tls: TlsServer | None = None,
    ) -> None:
        """:param sasl: Authenticates clients; None for a listener without SASL.
        :param tls: Encrypts connections; None for a listener without TLS.
        """
        self._listener = listener
        self._config = config
        self._dispatcher = dispatcher
        self._connections = connections
        self.sasl = sasl  #: replaced when it changes; applies to new connections
        self.handshakes = (
            None
            if tls is None
            else Handshakes(tls, connections, dispatcher.broker.turns, dispatcher.count_connection)
        )
        self._server: asyncio.Server | None = None

    @property
    def name(self) -> str:
        return self._listener.name

    async def start(self) -> None:
        """Bind the address; connections before `accept` are refused.

        :raises StartError: If the address cannot be used.
        """
        host, port = self._listener.host, self._listener.port
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._new_connection,
                host or None,
                port,
                backlog=backlog(self._config),
                start_serving=False,
            )
        except OSError as error:
            why = reason_of(error)
            message = (
                f"Cannot listen on {host or '*'}:{port}: {why}. "
                f"Choose another address for listener {self.name} (listeners, or --listen)."
            )
            raise StartError(message) from error

    def _new_connection(self) -> asyncio.BufferedProtocol:
        if self.handshakes is None:
            return ServerConnection(self._dispatcher, self.name, self._connections, self.sasl)
        tls = self.handshakes.tls
        own = None if self.sasl is not None else tls
        above = ServerConnection(self._dispatcher, self.name, self._connections, self.sasl, own)
        return TlsConnection(above, self.name, self.handshakes, tls.context.current)

    async def accept(self) -> None:
        """Begin to serve, unless the listener is stopped."""
        if self._server is not None:
            await self._server.start_serving()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port as bound."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    @property
    def advertised(self) -> tuple[str, int] | None:
        """The endpoint in the metadata for clients; None if the listener is not advertised."""
        advertised = self._listener.advertised
        if advertised is None:
            return None
        return advertised.host or socket.getfqdn(), advertised.port or self.address[1]

    async def stop(self) -> None:
        """Stop accepting; open connections are not closed. Those accepted a moment ago are registered by the end."""
        if self._server is not None:
            self._server.close()
            self._server = None
            await asyncio.sleep(0)
