"""All connections of a broker: how many there may be, and which have been idle for too long."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET
from typing import Protocol

from barnabas.base.clock import Clock
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.framing import SCRATCH_BYTES

#: More connections than there can be (`Integer.MAX_VALUE`).
NO_BOUND = (1 << 31) - 1

#: A kernel buffer size that is left as it is.
SYSTEM_DEFAULT = -1


class BufferedSocket(Protocol):
    """A socket whose buffers can be set."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set one option."""
        ...


class ManagedConnection(Protocol):
    """A connection as its owner sees it."""

    active_ms: int

    @property
    def client_host(self) -> str:
        """The address of its other end."""
        ...

    @property
    def listener(self) -> str:
        """The name of the listener that it came in by."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        ...

    def send(self) -> None:
        """Hand over what has been answered."""
        ...

    def close(self, why: str) -> None:
        """Send what is ready, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be; without bounds by default."""

    count_max: int = NO_BOUND
    address_count_max: int = NO_BOUND
    #: address -> its own bound
    overrides: Mapping[str, int] = field(default_factory=dict)
    #: listener -> its own bound
    listeners: Mapping[str, int] = field(default_factory=dict)

    def of_address(self, host: str) -> int:
        """The bound of one address."""
        return self.overrides.get(host, self.address_count_max)


class Connections:
    """The open connections, and what they share."""

    def __init__(
        self,
        clock: Clock,
        *,
        frame_bytes_max: int,
        limits: ConnectionLimits,
        idle_ms_max: int,
        send_buffer_bytes: int = SYSTEM_DEFAULT,
        receive_buffer_bytes: int = SYSTEM_DEFAULT,
    ) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)  #: of all connections: one thread reads at a time
        self.now_ms = clock.monotonic_ms
        self.frame_bytes_max = frame_bytes_max
        self.limits = limits  #: replaced when they change: they hold for connections to come
        self.accepted_count = 0
        self._idle_ms_max = idle_ms_max
        self._buffers_bytes = {SO_SNDBUF: send_buffer_bytes, SO_RCVBUF: receive_buffer_bytes}
        self._open: set[ManagedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._sending: list[ManagedConnection] = []

    def __len__(self) -> int:
        return len(self._open)

    def size_buffers(self, socket: BufferedSocket | None) -> None:
        """Give a socket the kernel buffers that are configured; -1 leaves the system's own."""
        if socket is None:
            return
        for option, size_bytes in self._buffers_bytes.items():
            if size_bytes != SYSTEM_DEFAULT:
                socket.setsockopt(SOL_SOCKET, option, size_bytes)

    def add(self, connection: ManagedConnection) -> str | None:
        """Take a connection in; why it must be closed when there are too many already."""
        host = connection.client_host
        self._open.add(connection)
        self._by_address[host] += 1
        self.accepted_count += 1
        limits = self.limits
        if len(self._open) > limits.count_max:
            return f"more than {limits.count_max} connections"
        if self._by_address[host] > limits.of_address(host):
            return f"more than {limits.of_address(host)} connections from {host}"
        bound = limits.listeners.get(connection.listener)
        if bound is not None and self.by_listener()[connection.listener] > bound:
            return f"more than {bound} connections on listener {connection.listener}"
        return None

    def remove(self, connection: ManagedConnection) -> None:
        """Let go of one that is closed."""
        if connection not in self._open:
            return
        self._open.remove(connection)
        host = connection.client_host
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]

    def send_soon(self, connection: ManagedConnection) -> None:
        """Send a connection's answers when all that has come in by now is handled.

        Waking a client costs more than answering it: while answers go out one behind the other, most find theirs awake.
        """
        if not self._sending:
            asyncio.get_running_loop().call_soon(self.send_all)
        self._sending.append(connection)

    def send_all(self) -> None:
        """Send what is to go out soon: the turn is over."""
        sending, self._sending = self._sending, []
        for connection in sending:
            connection.send()

    def close_idle(self) -> None:
        """Close what has been silent for `connections.max.idle.ms`.

        One that is closed keeps its socket until its last answer is sent; whoever has not read that after as
        long a time again never will.
        """
        if self._idle_ms_max <= 0:
            return
        limit_ms = self.now_ms() - self._idle_ms_max
        for connection in [each for each in self._open if each.active_ms < limit_ms and not each.is_busy]:
            connection.close(f"idle for more than {self._idle_ms_max} ms")
            if connection.active_ms < limit_ms - self._idle_ms_max:
                connection.abort()

    def by_listener(self) -> Counter[str]:
        """How many connections are open on each listener."""
        return Counter(connection.listener for connection in self._open)

    def close_listener(self, name: str) -> None:
        """Close what came in by a listener that is no more."""
        for connection in [each for each in self._open if each.listener == name]:
            connection.close(f"listener {name} is closed")

    def abort_all(self) -> None:
        """Close everything at once."""
        for connection in list(self._open):
            connection.abort()

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(
            names.CONNECTIONS,
            lambda: [({"listener": name}, count) for name, count in self.by_listener().items()],
        )

    def statistics(self) -> dict[str, int]:
        """How many connections are open, and how many have been taken in since the start."""
        return {"open_count": len(self._open), "accepted_count": self.accepted_count}
