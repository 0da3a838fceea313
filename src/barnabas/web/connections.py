"""Connections of browsers, limited in number and in the time that a request's head may take."""

import asyncio
import socket
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

#: An embedded console shares the broker's open files.
CONNECTIONS_MAX = 512
#: Time limit for the head of a request.
HEAD_S = 10.0


class BoundedConnection(H11Protocol):
    """A connection. Those beyond the limit are closed at once."""

    connections_max = CONNECTIONS_MAX
    head_s = HEAD_S
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection unless there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))
        # asyncio does this for its own listeners: without it a body waits 40 ms for the head's acknowledgement
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self.connections_max:
            self.transport.abort()
            return
        self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._stop_waiting()
        self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:  # no request since
            self.transport.close()
