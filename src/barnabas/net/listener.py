"""A listener: one address on which clients connect."""

import asyncio
import os
import socket

from barnabas.api.dispatch import Dispatcher
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.listeners import Listener
from barnabas.net.connection import ServerConnection
from barnabas.net.connections import Connections
from barnabas.security.sasl.server import SaslServer

#: Connections that may wait to be accepted unless it is configured. Kafka's default is enough for a thread that does
#: nothing but accept; here one thread does everything, and who finds no room tries again only after a second.
BACKLOG_COUNT = 1024


def backlog(config: BrokerConfig) -> int:
    """How many connections may wait to be accepted."""
    key = "socket.listen.backlog.size"
    return config.integer(key) if config.is_set(key) else BACKLOG_COUNT


def reason_of(error: OSError) -> str:
    """Why an address cannot be had, in the system's words; asyncio puts the address in front of them."""
    is_of_system = error.errno is not None and error.errno > 0  # those of name servers are not
    return os.strerror(error.errno or 0) if is_of_system else error.strerror or str(error)


class StartError(Exception):
    """The broker cannot start as it is configured; the message is for whoever configured it."""


class NetworkListener:
    """Listens on one address. `start` takes the port, `accept` begins to serve."""

    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        dispatcher: Dispatcher,
        connections: Connections,
        sasl: SaslServer | None = None,
    ) -> None:
        """`sasl` is what clients log in against; None where nobody does."""
        self._listener = listener
        self._config = config
        self._dispatcher = dispatcher
        self._connections = connections
        self.sasl = sasl  #: replaced when it changes: connections to come log in against it
        self._server: asyncio.Server | None = None

    @property
    def name(self) -> str:
        """The listener's name, which clients' metadata goes by."""
        return self._listener.name

    async def start(self) -> None:
        """Take the address; whoever connects before `accept` is refused.

        :raises StartError: When the address cannot be had.
        """
        host, port = self._listener.host, self._listener.port
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: ServerConnection(self._dispatcher, self.name, self._connections, self.sasl),
                host or None,
                port,
                backlog=backlog(self._config),
                start_serving=False,
            )
        except OSError as error:
            why = reason_of(error)
            message = f"Cannot listen on {host or '*'}:{port}: {why}. Choose another address with --listen."
            raise StartError(message) from error

    async def accept(self) -> None:
        """Begin to serve."""
        assert self._server is not None
        await self._server.start_serving()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port as bound."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    @property
    def advertised(self) -> tuple[str, int] | None:
        """Where clients are told to connect; None when they are not told of this listener."""
        advertised = self._listener.advertised
        if advertised is None:
            return None
        return advertised.host or socket.getfqdn(), advertised.port or self.address[1]

    async def stop(self) -> None:
        """Accept nobody any more; open connections are not touched."""
        if self._server is not None:
            self._server.close()
            self._server = None
