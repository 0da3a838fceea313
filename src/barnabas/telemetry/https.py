"""Accepts connections for HTTPS, with limits of number and time for handshakes.

A server of asyncio counts a connection only when its handshake is complete, but needs 256 KiB of memory for it from the
beginning.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

from barnabas.telemetry.logs import get_logger

#: Handshakes at a time. The oldest is given up for a newer one: a real client needs milliseconds.
HANDSHAKES_MAX = 32

#: How long a client may take, and how long its answer to the end of the connection is awaited.
HANDSHAKE_S = 5.0

#: Pause when no connection can be accepted, as when too many files are open.
ACCEPT_PAUSE_S = 1.0

_BACKLOG = 128

_log = get_logger("barnabas.telemetry")


def listening(host: str, port: int) -> socket.socket:
    """A listening socket, on any free port for 0.

    :raises OSError: When the address is in use or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class HttpsServer:
    """Gives each connection whose handshake is complete to a new protocol. Closes like a server of asyncio."""

    def __init__(
        self,
        listener: socket.socket,
        new_protocol: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        timeout_s: float = HANDSHAKE_S,
    ) -> None:
        """:param listener: Is closed with this server."""
        self._listener = listener
        self._new_protocol = new_protocol
        self._context = context
        self._timeout_s = timeout_s
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[object], None] = {}  #: in the order in which they began

    def start(self) -> None:
        """Begin to accept connections, on the running loop."""
        self._listener.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more connections, and give up handshakes; complete connections stay open."""
        if self._accepting is not None:
            self._accepting.cancel()
        for handshake in self._handshakes:
            handshake.cancel()

    async def wait_closed(self) -> None:
        if self._accepting is not None:
            await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        with self._listener:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._listener)
                except OSError as error:
                    _log.error("cannot accept a connection for HTTPS", why=str(error))
                    await asyncio.sleep(ACCEPT_PAUSE_S)
                else:
                    self._begin(loop, connection)
                    await asyncio.sleep(0)  # others get their turn also if many connections wait

    def _begin(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        under_way = [each for each in self._handshakes if not each.cancelling()]
        if len(under_way) >= HANDSHAKES_MAX:
            under_way[0].cancel()
        shaking_hands = loop.connect_accepted_socket(
            self._new_protocol,
            connection,
            ssl=self._context,
            ssl_handshake_timeout=self._timeout_s,
            ssl_shutdown_timeout=self._timeout_s,
        )
        handshake: asyncio.Task[object] = loop.create_task(shaking_hands)
        self._handshakes[handshake] = None

        def end(_: object) -> None:
            del self._handshakes[handshake]
            if handshake.cancelled() or handshake.exception() is not None:
                connection.close()

        handshake.add_done_callback(end)
