"""The open connections of a broker: their limits, their idle timeout, and what they share."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET
from typing import Protocol

from barnabas.base.clock import Clock
from barnabas.net.creation_rate import Admission, ConnectionPacer, CreationRates
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.framing import SCRATCH_BYTES

#: No limit (`Integer.MAX_VALUE`).
NO_BOUND = (1 << 31) - 1

#: The default of the system is not changed.
SYSTEM_DEFAULT = -1


class BufferedSocket(Protocol):
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


class ManagedConnection(Protocol):
    """A connection as `Connections` uses it."""

    active_ms: int

    @property
    def client_host(self) -> str: ...

    @property
    def listener(self) -> str: ...

    @property
    def is_busy(self) -> bool:
        """Whether a request waits, so that the connection does not count as idle."""
        ...

    def has_read(self) -> bool:
        """Whether the client has read from a full buffer since the last call, or since the buffer was full."""
        ...

    def send(self) -> None:
        """Write the responses of the present turn."""
        ...

    def close(self, why: str) -> None:
        """Send ready responses, then close."""
        ...

    def abort(self) -> None:
        """Close without sending anything."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Maximum numbers of connections."""

    count_max: int = NO_BOUND
    address_count_max: int = NO_BOUND
    #: address -> its maximum
    overrides: Mapping[str, int] = field(default_factory=dict)
    #: listener -> its maximum
    listeners: Mapping[str, int] = field(default_factory=dict)
    creation_rates: CreationRates = field(default_factory=CreationRates)

    def of_address(self, host: str) -> int:
        return self.overrides.get(host, self.address_count_max)


class Connections:
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
        self.scratch = bytearray(
            SCRATCH_BYTES
        )  #: shared by all connections, because one thread reads at a time
        self.tls_scratch = bytearray(SCRATCH_BYTES)  #: likewise, for ciphertext
        self.now_ms = clock.monotonic_ms
        self.frame_bytes_max = frame_bytes_max
        self.limits = limits  #: replaced when they change; they apply to new connections
        self.accepted_count = 0
        self.are_closing = False  #: all connections are aborted, and their requests are cancelled
        self._idle_ms_max = idle_ms_max
        self._buffers_bytes = {SO_SNDBUF: send_buffer_bytes, SO_RCVBUF: receive_buffer_bytes}
        self._open: dict[ManagedConnection, None] = {}  #: in the order in which they were accepted
        self._by_address: Counter[str] = Counter()
        self._sending: list[ManagedConnection] = []
        self._pacer = ConnectionPacer()

    def __len__(self) -> int:
        return len(self._open)

    def size_buffers(self, socket: BufferedSocket | None) -> None:
        """Set the configured sizes of the kernel's buffers."""
        if socket is None:
            return
        for option, size_bytes in self._buffers_bytes.items():
            if size_bytes != SYSTEM_DEFAULT:
                socket.setsockopt(SOL_SOCKET, option, size_bytes)

    def add(self, connection: ManagedConnection) -> str | None:
        """Register a connection; return why it must be closed, if there are too many."""
        self.accepted_count += 1
        return self.add_handshake(connection)

    def add_handshake(self, connection: ManagedConnection) -> str | None:
        """Register a connection whose protocol is not known yet, and which another one will replace; see `add`."""
        host = connection.client_host
        self._open[connection] = None
        self._by_address[host] += 1
        limits = self.limits
        if len(self._open) > limits.count_max:
            return f"more than {limits.count_max} connections"
        if self._by_address[host] > limits.of_address(host):
            return f"more than {limits.of_address(host)} connections from {host}"
        bound = limits.listeners.get(connection.listener)
        if bound is not None and self.by_listener()[connection.listener] > bound:
            return f"more than {bound} connections on listener {connection.listener}"
        return None

    def admit(self, listener: str, quota_delay_ms: int) -> Admission:
        """Count a new connection, and return what to do with it (KIP-612).

        :param quota_delay_ms: How long to keep a client that exceeds the quota of its address, before it is refused.
        """
        if quota_delay_ms:
            return Admission(quota_delay_ms, is_refused=True)
        return self._pacer.admit(self.limits.creation_rates, listener, self.now_ms())

    def remove(self, connection: ManagedConnection) -> None:
        if connection not in self._open:
            return
        del self._open[connection]
        host = connection.client_host
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]

    def send_soon(self, connection: ManagedConnection) -> None:
        """Write a connection's responses when everything that has arrived is handled.

        Waking a client costs more than answering it. If responses are written one after another, most clients are awake
        already.
        """
        if not self._sending:
            asyncio.get_running_loop().call_soon(self.send_all)
        self._sending.append(connection)

    def send_all(self) -> None:
        """Write the responses of all connections at the end of a turn."""
        sending, self._sending = self._sending, []
        for connection in sending:
            connection.send()

    def close_idle(self) -> None:
        """Close connections that have been idle for `connections.max.idle.ms`: neither read nor written.

        A closing connection keeps its socket until its last response is sent. If the client has not read that after the
        same time again, the connection is aborted.
        """
        if self._idle_ms_max <= 0:
            return
        now_ms = self.now_ms()
        limit_ms = now_ms - self._idle_ms_max
        idle = [
            connection
            for connection in self._open
            if connection.active_ms < limit_ms and not connection.is_busy
        ]
        for connection in idle:
            if connection.has_read():
                connection.active_ms = now_ms
                continue
            connection.close(f"idle for more than {self._idle_ms_max} ms")
            if connection.active_ms < limit_ms - self._idle_ms_max:
                connection.abort()

    def by_listener(self) -> Counter[str]:
        """Return the number of connections of each listener."""
        return Counter(connection.listener for connection in self._open)

    def close_listener(self, name: str) -> None:
        """Close the connections of a removed listener."""
        for connection in [connection for connection in self._open if connection.listener == name]:
            connection.close(f"listener {name} is closed")

    def abort_all(self) -> None:
        self.are_closing = True
        for connection in list(self._open):
            connection.abort()

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(
            names.CONNECTIONS,
            lambda: [({"listener": name}, count) for name, count in self.by_listener().items()],
        )

    def statistics(self) -> dict[str, int]:
        return {
            "open_count": len(self._open),
            "accepted_count": self.accepted_count,
            **self._pacer.statistics(),
        }
