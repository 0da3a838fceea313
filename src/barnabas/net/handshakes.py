"""The TLS handshakes of one listener: their limits, their time, and their turns of the thread."""

import asyncio
import ssl

from barnabas.base.turns import Share, Turns
from barnabas.net.connections import Connections
from barnabas.net.tls_transport import TlsConnection, TlsPhase
from barnabas.security.tls_server import TlsServer

#: How long a client may take.
TIMEOUT_MS = 10_000

#: Handshakes that have begun, at most. The oldest is given up for a newer one: a real client needs milliseconds.
BEGUN_COUNT_MAX = 1_000


class Handshakes:
    """Lets each client shake hands. All together have one share of the thread, like one client that sends requests."""

    def __init__(
        self, tls: TlsServer, connections: Connections, turns: Turns, *, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self.tls = tls  #: replaced when it changes; applies to new connections
        self._connections = connections
        self._turns = turns
        self._timeout_s = timeout_ms / 1000
        self._share = Share()
        self._timers: dict[TlsConnection, asyncio.TimerHandle] = {}
        self._begun: dict[TlsConnection, None] = {}  #: in the order in which they began
        self.completed_count = 0
        self.failed_count = 0

    @property
    def scratch(self) -> bytearray:
        return self._connections.tls_scratch

    def begin(self, connection: TlsConnection) -> None:
        """Take note of a new connection. A client that sends nothing costs little, and no other client its turn."""
        connection.active_ms = self._connections.now_ms()
        refusal = self._connections.add_handshake(connection)
        if refusal is not None:
            connection.close(refusal)
            return
        self._timers[connection] = asyncio.get_running_loop().call_later(
            self._timeout_s, connection.close, f"no handshake within {self._timeout_s:.0f} s"
        )

    def go_on(self, connection: TlsConnection) -> None:
        if connection not in self._begun:
            self._begun[connection] = None
            if len(self._begun) > BEGUN_COUNT_MAX:
                next(iter(self._begun)).close("too many handshakes at the same time")
        self._turns.call_later(self._share, connection.shake_hands)

    def context(self) -> ssl.SSLContext:
        return self.tls.context.current()

    def end(self, connection: TlsConnection, failure: str | None) -> None:
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()
        self._begun.pop(connection, None)
        self._connections.remove(connection)
        if failure is None:
            self.completed_count += 1
        else:
            self.failed_count += 1
            self.tls.handshake_failed(connection.client_host, failure)

    def statistics(self) -> dict[str, int]:
        phases = [connection.phase for connection in self._timers]
        return {
            "silent_count": phases.count(TlsPhase.SILENT),
            "begun_count": len(self._begun),
            "completed_count": self.completed_count,
            "failed_count": self.failed_count,
        }
