"""What a connection may do next. No IO.

The requests of a connection are handled one at a time and answered in their order. Most are answered immediately, and
the connection stays OPEN. A request that has to wait makes it RESPONSE_PENDING: later requests are queued, and when the
queue is full, the socket is not read. A client that exceeds its quota is THROTTLED: it gets its response, and then it
is not read for a while. A new connection beyond the limits per second waits in the same phase. A client that fails to
log in, or connects too often, is REFUSED: it is closed after a delay.
"""

import enum
from collections import deque
from collections.abc import Mapping

#: Limits of the queue; when one is reached, the socket is not read until the queue is empty.
QUEUED_COUNT_MAX = 32
QUEUED_BYTES_MAX = 1 << 20


class ConnectionPhase(enum.Enum):
    OPEN = "the next request may start"
    RESPONSE_PENDING = "a request waits, and later ones are queued"
    THROTTLED = "the client is not read until its wait is over (KIP-219, KIP-612)"
    REFUSED = "the client is not read, and is closed after a delay (KIP-306, KIP-612)"
    CLOSING = "no more requests are read or handled, and ready responses are sent"
    CLOSED = "the socket is closed"


_Phase = ConnectionPhase
TRANSITIONS: Mapping[ConnectionPhase, frozenset[ConnectionPhase]] = {
    _Phase.OPEN: frozenset(
        {_Phase.RESPONSE_PENDING, _Phase.THROTTLED, _Phase.REFUSED, _Phase.CLOSING, _Phase.CLOSED}
    ),
    _Phase.RESPONSE_PENDING: frozenset({_Phase.OPEN, _Phase.CLOSING, _Phase.CLOSED}),
    _Phase.THROTTLED: frozenset({_Phase.OPEN, _Phase.CLOSING, _Phase.CLOSED}),
    _Phase.REFUSED: frozenset({_Phase.CLOSING, _Phase.CLOSED}),
    _Phase.CLOSING: frozenset({_Phase.CLOSED}),
    _Phase.CLOSED: frozenset(),
}

_UNREAD = frozenset({_Phase.THROTTLED, _Phase.REFUSED, _Phase.CLOSING})
_IN_USE = frozenset({_Phase.OPEN, _Phase.RESPONSE_PENDING})
_ENDING = frozenset({_Phase.REFUSED, _Phase.CLOSING, _Phase.CLOSED})


class ConnectionState:
    """The phase of a connection, its queued requests, and whether its socket is read and written."""

    def __init__(self) -> None:
        self.phase = ConnectionPhase.OPEN
        self.can_start = True  #: the next request may start
        self.is_write_paused = False  #: the client reads more slowly than it sends requests
        self.is_reading = True
        self.queue: deque[bytearray] = deque()
        self._queued_bytes = 0

    @property
    def is_ending(self) -> bool:
        return self.phase in _ENDING

    def change(self, phase: ConnectionPhase) -> None:
        assert phase in TRANSITIONS[self.phase], (self.phase, phase)
        self.phase = phase
        self.can_start = phase is _Phase.OPEN and not self.is_write_paused
        if phase in _UNREAD:
            self.is_reading = False
        elif phase is _Phase.CLOSED:
            self.queue.clear()
            self._queued_bytes = 0

    def enqueue(self, frame: memoryview) -> None:
        """Queue a copy of a request: `frame` is valid only until more is received."""
        self.queue.append(bytearray(frame))
        self._queued_bytes += len(frame)
        if len(self.queue) >= QUEUED_COUNT_MAX or self._queued_bytes >= QUEUED_BYTES_MAX:
            self.is_reading = False

    def put_back(self, frame: memoryview) -> None:
        """Queue a copy of a request before all others."""
        self.queue.appendleft(bytearray(frame))
        self._queued_bytes += len(frame)

    def dequeue(self) -> memoryview:
        frame = self.queue.popleft()
        self._queued_bytes -= len(frame)
        return memoryview(frame)

    def pause_writing(self) -> None:
        self.is_write_paused = True
        self.can_start = False

    def resume_writing(self) -> None:
        self.is_write_paused = False
        self.can_start = self.phase is _Phase.OPEN

    def resume_reading(self) -> None:
        """Read the socket again if the queue is empty and the phase allows it."""
        if not self.queue and self.phase in _IN_USE:
            self.is_reading = True

    def statistics(self) -> dict[str, object]:
        return {
            "phase": self.phase.name,
            "queued_count": len(self.queue),
            "queued_bytes": self._queued_bytes,
            "is_reading": self.is_reading,
        }
