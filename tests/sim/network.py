"""TCP in memory: bytes arrive in order after a delay, until a connection is lost.

A direction between two nodes can be blocked, as by a network partition. What is sent meanwhile waits, as TCP sends it
again, and arrives when the direction is open again. A connection can be cut: then of the bytes on their way some arrive
and the rest do not.
"""

import asyncio
import itertools
import random
from asyncio import transports
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.loop import Node, SimulatedLoop

#: Range of the delay of a piece of data.
DELAY_S = (100e-6, 3e-3)

#: A sender must pause when this much has not been read by its peer.
UNREAD_BYTES_MAX = 1 << 20

#: Share of the connections that `cut_some` cuts.
CUT_SHARE = 0.5

#: Share of the connections that do not survive a blocked direction.
LOST_SHARE = 0.3

#: Interval of the attempts to connect through a blocked direction.
CONNECT_RETRY_S = 0.5

#: Share of the pieces of data that arrive in two parts.
SPLIT_SHARE = 0.05

_FIRST_PORT = 40_000


class Network:
    """The listeners and connections of all nodes, which are known by their names."""

    def __init__(self, loop: "SimulatedLoop", rng: random.Random) -> None:
        self.loop = loop
        self.rng = rng
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._owners: dict[tuple[str, int], str] = {}  #: of all addresses that were ever bound
        self._ends: list[Transport] = []
        self._ports = itertools.count(_FIRST_PORT)
        self._blocks: Counter[tuple[str, str]] = Counter()  #: (from, to)
        self._extra_delays_s: dict[tuple[str, str], float] = {}
        self.sent_bytes = 0

    def listen(self, factory: Any, host: str, port: int, *, is_serving: bool) -> "Listener":
        """Bind an address.

        :raises OSError: If it is in use.
        """
        port = port or next(self._ports)
        if (host, port) in self._listeners:
            raise OSError(98, "Address already in use")
        listener = Listener(self, factory, host, port, self.loop.node)
        listener.is_serving = is_serving
        self._listeners[host, port] = listener
        self._owners[host, port] = self.loop.node_name
        return listener

    def unlisten(self, listener: "Listener") -> None:
        self._listeners.pop((listener.host, listener.port), None)

    async def connect(self, factory: Any, host: str, port: int) -> tuple["Transport", Any]:
        """Open a connection.

        :raises ConnectionRefusedError: If no node serves the address.
        """
        here_name, there_name = self.loop.node_name, self._owners.get((host, port), "")
        await asyncio.sleep(self.delay_s(here_name, there_name))
        while self.is_blocked(here_name, there_name) or self.is_blocked(there_name, here_name):
            await asyncio.sleep(CONNECT_RETRY_S)  # the caller gives up after a while
        listener = self._listeners.get((host, port))
        if listener is None or not listener.is_serving:
            raise ConnectionRefusedError(111, "Connection refused")
        protocol = factory()
        here = Transport(self, protocol, (host, port), self.loop.node)
        there = Transport(self, None, ("127.0.0.1", next(self._ports)), listener.node)
        here.peer, there.peer = there, here
        self._ends += (here, there)
        self.loop.run_on(listener.node, self.loop.call_soon, listener.accept, there)
        protocol.connection_made(here)
        return here, protocol

    def delay_s(self, sender: str, receiver: str) -> float:
        return self.rng.uniform(*DELAY_S) + self._extra_delays_s.get((sender, receiver), 0.0)

    def remove(self, node: "Node") -> None:
        """Free the addresses of a killed node, and reset its connections."""
        for address in [address for address, listener in self._listeners.items() if listener.node is node]:
            del self._listeners[address]
        for end in self._ends:
            if end.node is node and end.peer is not None:
                end.peer.deliver(_RESET)
        self._ends = [end for end in self._ends if end.node is not node]

    def drop(self, end: "Transport") -> None:
        if end in self._ends:
            self._ends.remove(end)

    # Faults

    def is_blocked(self, sender: str, receiver: str) -> bool:
        return self._blocks[sender, receiver] > 0

    def block(self, sender: str, receiver: str) -> None:
        """Let nothing pass in one direction until it is unblocked as often as it was blocked."""
        self._blocks[sender, receiver] += 1

    def unblock(self, sender: str, receiver: str) -> None:
        self._blocks[sender, receiver] -= 1
        if self.is_blocked(sender, receiver):
            return
        for end in list(self._ends):
            if end.is_between(sender, receiver) and end.has_held:
                if self.rng.random() < LOST_SHARE:
                    self._cut(end)
                else:
                    end.release_later()

    def slow_down(self, sender: str, receiver: str, extra_delay_s: float) -> None:
        """Delay what is sent from now on; 0 for the usual delay."""
        self._extra_delays_s[sender, receiver] = extra_delay_s

    def cut_some(self, name: str) -> None:
        """Lose some of the connections of a node."""
        for end in list(self._ends):
            if end.node_name == name and end.peer_name != name and self.rng.random() < CUT_SHARE:
                self._cut(end)

    def _cut(self, end: "Transport") -> None:
        for each in (end, end.peer):
            if each is not None:
                each.cut()


class Listener:
    """Stands for the server that `create_server` returns."""

    def __init__(self, network: Network, factory: Any, host: str, port: int, node: "Node | None") -> None:
        self._network = network
        self.factory = factory
        self.host = host
        self.port = port
        self.node: Any = node
        self.is_serving = False
        self.sockets = [self]

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port

    def accept(self, transport: "Transport") -> None:
        """Serve a connection; while the process is paused, it waits in the backlog."""
        if transport.is_closing():
            return
        if not self.is_serving:
            transport.abort()
            return
        transport.set_protocol(self.factory())
        transport.get_protocol().connection_made(transport)

    async def start_serving(self) -> None:
        self.is_serving = True

    def close(self) -> None:
        self.is_serving = False
        self._network.unlisten(self)

    async def wait_closed(self) -> None:
        pass


_END = b""
_RESET = None


class Transport(transports.Transport):
    """One end of a connection."""

    def __init__(
        self, network: Network, protocol: Any, address: tuple[str, int], node: "Node | None"
    ) -> None:
        super().__init__({"peername": address, "socket": None})
        self._network = network
        self._loop = network.loop
        self._protocol = protocol
        self.node: Any = node
        self.node_name = "" if node is None else node.name
        self.peer: Transport | None = None
        self._is_closing = False
        self._is_paused = False
        self._held: deque[bytes | None] = deque()  #: did not pass a blocked direction
        self._arrived: deque[bytes | None] = deque()
        self._on_way_bytes = 0
        self._cut_after_bytes: int | None = None
        self._unread_bytes = 0
        self._arrives_at_s = 0.0
        self._writing_is_paused = False

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    @property
    def peer_name(self) -> str:
        return "" if self.peer is None else self.peer.node_name

    def is_between(self, sender: str, receiver: str) -> bool:
        """Whether this end receives what one node sends to another."""
        return self.node_name == receiver and self.peer_name == sender

    # Sending

    def write(self, data: Any) -> None:
        if self._is_closing or not data or self.peer is None:
            return
        self._network.sent_bytes += len(data)
        self.peer.deliver_in_parts(bytes(data))
        if self.peer._unread_bytes > UNREAD_BYTES_MAX and not self._writing_is_paused:
            self._writing_is_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(bytes(data) for data in list_of_data))

    def get_write_buffer_size(self) -> int:
        return self.peer._unread_bytes if self.peer is not None and not self._is_closing else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def can_write_eof(self) -> bool:
        return False

    # Receiving

    def deliver_in_parts(self, data: bytes) -> None:
        """Let data arrive, sometimes in two parts."""
        self._loop.trace.add("network", data)
        rng = self._network.rng
        if len(data) > 1 and rng.random() < SPLIT_SHARE:
            at = rng.randrange(1, len(data))
            self.deliver(data[:at])
            data = data[at:]
        self.deliver(data)

    def deliver(self, data: bytes | None) -> None:
        """Let data, an end or a reset arrive after a delay and after everything that was sent before."""
        self._unread_bytes += len(data or b"")
        self._on_way_bytes += len(data or b"")
        if not data:
            self._loop.trace.add("end", b"")
        delay_s = self._network.delay_s(self.peer_name, self.node_name)
        at_s = max(self._loop.time() + delay_s, self._arrives_at_s)
        self._arrives_at_s = at_s + 1e-9
        self._loop.run_on(self.node, self._loop.call_at, at_s, self._receive, data)

    def _receive(self, data: bytes | None) -> None:
        self._on_way_bytes -= len(data or b"")
        if self._held or self._network.is_blocked(self.peer_name, self.node_name):
            self._held.append(data)
        else:
            self._take(data)

    @property
    def has_held(self) -> bool:
        return bool(self._held)

    def release_later(self) -> None:
        """Receive what was held back, after a delay."""
        delay_s = self._network.delay_s(self.peer_name, self.node_name)
        self._loop.run_on(self.node, self._loop.call_later, delay_s, self._release)

    def _release(self) -> None:
        while self._held and not self._network.is_blocked(self.peer_name, self.node_name):
            self._take(self._held.popleft())

    def cut(self) -> None:
        """Lose the connection after some of the bytes that are on their way."""
        self._held.clear()
        self._cut_after_bytes = self._network.rng.randint(0, self._on_way_bytes)
        if self._cut_after_bytes == 0:
            self._loop.run_on(self.node, self._loop.call_soon, self._take, _RESET)

    def _take(self, data: bytes | None) -> None:
        if data is not None and self._cut_after_bytes is not None:
            data = data[: self._cut_after_bytes]
            self._cut_after_bytes -= len(data)
        if data is _RESET:
            self._arrived.clear()
            self._lose(ConnectionResetError(104, "Connection reset by peer"))
            return
        self._arrived.append(data)
        self._pass_on()
        if self._cut_after_bytes == 0:
            self._take(_RESET)

    def _pass_on(self) -> None:
        while self._arrived and not self._is_paused and not self._is_closing:
            data = self._arrived.popleft() or _END
            if data == _END:
                self._lose(None)
                return
            self._consume(data)
            self._unread_bytes -= len(data)
            self._resume_peer()

    def _consume(self, data: bytes) -> None:
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(data)
            return
        left = memoryview(data)
        while left and not self._is_closing:
            buffer = self._protocol.get_buffer(-1)
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            self._protocol.buffer_updated(count)
            left = left[count:]

    def _resume_peer(self) -> None:
        peer = self.peer
        if peer is not None and peer._writing_is_paused and self._unread_bytes <= UNREAD_BYTES_MAX // 2:
            peer._writing_is_paused = False
            self._loop.run_on(peer.node, self._loop.call_soon, peer._protocol.resume_writing)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._pass_on)

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    # Closing

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing and self.peer is not None:
            self.peer.deliver(_END)
        self._lose(None)

    def abort(self) -> None:
        if not self._is_closing and self.peer is not None:
            self.peer.deliver(_RESET)
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._network.drop(self)
            if self._protocol is not None:
                self._loop.call_soon(self._protocol.connection_lost, error)
