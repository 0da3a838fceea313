"""Relays in front of servers on this machine, which cut the network between any two processes.

A server advertises the port of its relay. The relay learns from /proc which child of this process has opened a
connection, so two processes can be cut off from each other while both reach others. This needs no privileges.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from interop.brokers import free_ports

#: All processes that have no name, such as the programs of clients.
CLIENTS = "clients"

#: How often a relay looks whether its server listens again.
PROBE_INTERVAL_S = 0.02
CHUNK_BYTES = 1 << 16

T = TypeVar("T")


class Network:
    """Relays that run on an event loop in a thread.

    Between two processes that are cut off from each other nothing arrives, neither data nor the end of a connection.
    New connections are accepted by the system, as those of a stopped process are, and then nothing arrives, either.
    When the cut is healed, whatever was sent arrives.
    """

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}  #: name -> process
        self._cuts: set[frozenset[str]] = set()
        self._loop = asyncio.new_event_loop()
        self._healed = asyncio.Event()
        self._relays: dict[str, Relay] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="relays", daemon=True)
        self._thread.start()

    def relay(self, server: str, port: int) -> int:
        """Return a port that leads to a port of the server."""
        relay = Relay(server, port, self)
        self._run(relay.open())
        return relay.port

    def cut(self, one: str, others: Iterable[str]) -> None:
        """Cut a process off from others, in both directions."""
        pairs = {frozenset((one, other)) for other in others}
        self._loop.call_soon_threadsafe(self._cuts.update, pairs)

    def heal(self) -> None:
        """Let all processes reach each other again."""
        self._run(self._heal())

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def wait_until_passable(self, client_pid: int | None, server: str) -> None:
        """Wait until a process is not cut off from a server."""
        while frozenset((self._name(client_pid), server)) in self._cuts:
            await self._healed.wait()

    def _name(self, pid: int | None) -> str:
        return next((name for name, each in self.pids.items() if each == pid), CLIENTS)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _heal(self) -> None:
        self._cuts.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    async def _close(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Relay:
    """Passes connections on to a server; it listens while the server does, so a dead server refuses connections."""

    def __init__(self, server: str, port: int, network: Network) -> None:
        self._server = server
        self._server_port = port
        self._network = network
        [self.port] = free_ports(1)
        self._listening: asyncio.Server | None = None
        self._probing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._probing = asyncio.create_task(self._listen_again())

    async def _listen_again(self) -> None:
        """Listen once the server does."""
        while not _listens(self._server_port):
            await asyncio.sleep(PROBE_INTERVAL_S)
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._probing = None

    def _stop_if_dead(self) -> None:
        """Refuse connections if the server does not listen."""
        if self._listening is not None and not _listens(self._server_port):
            self._listening.close()
            self._listening = None
            self._probing = asyncio.create_task(self._listen_again())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client_pid = _owner(writer.get_extra_info("peername")[1], self.port)
        passable = partial(self._network.wait_until_passable, client_pid, self._server)
        with contextlib.suppress(OSError), contextlib.closing(writer):
            await passable()
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
            with contextlib.closing(server_writer):
                both = {
                    asyncio.create_task(_pass_on(reader, server_writer, passable)),
                    asyncio.create_task(_pass_on(server_reader, writer, passable)),
                }
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in both:
                        task.cancel()
        self._stop_if_dead()


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    passable: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Pass bytes on until the connection ends, which is passed on, too."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            await passable()
            writer.write(data)
            await writer.drain()
    await passable()


def _listens(port: int) -> bool:
    """Return whether a process of this machine listens on a loopback port."""
    local = f"0100007F:{port:04X}"
    return any(fields[1] == local and fields[3] == "0A" for fields in _connections())


def _owner(client_port: int, server_port: int) -> int | None:
    """Return which child of this process has connected from a port; None if none has."""
    ends = [f"0100007F:{client_port:04X}", f"0100007F:{server_port:04X}"]
    inode = next((fields[9] for fields in _connections() if fields[1:3] == ends), None)
    return next((pid for pid in _children() if inode in _sockets(pid)), None)


def _children() -> list[int]:
    lists = Path("/proc/self/task").glob("*/children")
    return [int(pid) for each in lists for pid in each.read_text().split()]


def _connections() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]


def _sockets(pid: int) -> set[str]:
    """Return the inodes of the sockets of a process."""
    inodes = set()
    with contextlib.suppress(OSError):  # it has ended
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(descriptor.path).removeprefix("socket:[").removesuffix("]"))
    return inodes
