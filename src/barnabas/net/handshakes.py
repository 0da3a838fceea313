"""The TLS handshakes of one listener: their limits, their time, and their turns of the thread."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from barnabas.base.turns import Share, Turns
from barnabas.net.connections import Connections
from barnabas.net.tls_transport import TlsConnection, TlsPhase
from barnabas.security.tls_server import TlsServer

#: How long a client may take.
TIMEOUT_MS = 10_000

#: Handshakes in which the client's answer is awaited, at most. The oldest is given up for a newer one: a real client
#: needs milliseconds.
AWAITED_COUNT_MAX = 1_000


class Handshakes:
    """Lets each client shake hands. All together have one share of the thread, like one client that sends requests.

    A handshake that has begun goes on before another one begins, so that many at once come to an end.
    """

    def __init__(
        self,
        tls: TlsServer,
        connections: Connections,
        turns: Turns,
        delay_ms: Callable[[str], int],
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """:param delay_ms: Returns how long to keep a client at an address from which too many connections come."""
        self.tls = tls  #: replaced when it changes; applies to new connections
        self._connections = connections
        self._turns = turns
        self._delay_ms = delay_ms
        self._timeout_s = timeout_ms / 1000
        self._share = Share()
        self._timers: dict[TlsConnection, asyncio.TimerHandle] = {}
        self._awaited: dict[TlsConnection, None] = {}  #: in the order in which the broker has answered
        self._to_begin: deque[TlsConnection] = deque()
        self._to_go_on: deque[TlsConnection] = deque()
        self._is_serving = False
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
        delay_ms, is_refused = self._connections.admit(
            connection.listener, self._delay_ms(connection.client_host)
        )
        if is_refused:
            self._hold(connection, delay_ms, connection.abort)
        elif delay_ms:
            self._hold(connection, delay_ms, partial(self._release, connection))
        else:
            self._limit_time(connection)

    def _hold(self, connection: TlsConnection, delay_ms: int, then: Callable[[], None]) -> None:
        self._timers[connection] = asyncio.get_running_loop().call_later(delay_ms / 1000, then)
        connection.hold()

    def _release(self, connection: TlsConnection) -> None:
        connection.release()
        self._limit_time(connection)

    def _limit_time(self, connection: TlsConnection) -> None:
        self._timers[connection] = asyncio.get_running_loop().call_later(
            self._timeout_s, connection.close, f"no handshake within {self._timeout_s:.0f} s"
        )

    def go_on(self, connection: TlsConnection) -> None:
        self._awaited.pop(connection, None)
        (self._to_go_on if connection.has_begun else self._to_begin).append(connection)
        if not self._is_serving:
            self._is_serving = True
            self._turns.begin()
            self._turns.call_later(self._share, self._serve)

    def _serve(self) -> None:
        """Let one client go on; the time that this takes counts for the share of all."""
        self._is_serving = False
        waiting = self._to_go_on or self._to_begin
        if not waiting:
            return
        try:
            waiting.popleft().shake_hands()
        finally:
            if self._to_go_on or self._to_begin:
                self._is_serving = True
                self._turns.call_later(self._share, self._serve)

    def wait(self, connection: TlsConnection) -> None:
        self._awaited[connection] = None
        if len(self._awaited) > AWAITED_COUNT_MAX:
            next(iter(self._awaited)).close("too many handshakes at the same time")

    def end(self, connection: TlsConnection, failure: str | None, *, is_refusal: bool = False) -> None:
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()
        self._awaited.pop(connection, None)
        self._connections.remove(connection)
        if failure is None:
            self.completed_count += 1
            return
        self.failed_count += 1
        if is_refusal:
            self.tls.handshake_failed(connection.client_host, failure)

    def statistics(self) -> dict[str, int]:
        phases = [connection.phase for connection in self._timers]
        return {
            "silent_count": phases.count(TlsPhase.SILENT),
            "awaited_count": len(self._awaited),
            "waiting_count": len(self._to_begin) + len(self._to_go_on),
            "completed_count": self.completed_count,
            "failed_count": self.failed_count,
        }
