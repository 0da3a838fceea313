"""A broker of either kind as a child process, and the probe that waits until it responds."""

import io
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
PROBE_INTERVAL_S = 0.01

#: Metadata (key 3) version 1 with an empty topic list: brokers only.
_METADATA_BROKERS_ONLY = struct.pack(">hhih5si", 3, 1, 7, 5, b"probe", 0)


class BrokerDidNotStart(Exception):
    """The process ended, or did not respond in time; the message quotes its last output."""


@dataclass
class Broker:
    """A running broker: its address, process, and data directory."""

    kind: str
    process: subprocess.Popen[bytes]
    bootstrap: str
    data_dir: Path
    log_path: Path
    start_s: float = 0.0  #: from the spawn of the process to the first Metadata response
    node_id: int = -1  #: from the Metadata response
    environment: Mapping[str, str] | None = None  #: environment of the process; None for ours
    brokers_count: int = 1  #: number of brokers in the cluster
    others: Sequence["Broker"] = ()  #: brokers of its cluster in other processes, which stop with it

    @property
    def pid(self) -> int:
        """Return the process id, for /proc."""
        return self.process.pid

    @property
    def nodes(self) -> dict[int, str]:
        """Return the id and the address of each broker of its cluster, as it responds now."""
        return describe_brokers(self.bootstrap)

    def stop(self) -> int:
        """Stop the process and wait; kill it after a timeout. Return its exit status."""
        for other in self.others:
            other.process.send_signal(signal.SIGTERM)
        status = self._end(signal.SIGTERM)
        for other in self.others:
            other.stop()
        return status

    def kill(self) -> int:
        """End the process like a power failure (SIGKILL)."""
        return self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the broker and restart it on its data in the same way; ``start_s`` is that of the second start.

        Raises:
            BrokerDidNotStart: as `launch`.
        """
        self.stop()
        again = launch(
            self.kind,
            self.process.args,
            self.bootstrap,
            self.data_dir,
            self.log_path,
            self.environment,
            self.brokers_count,
        )
        self.process, self.start_s = again.process, again.start_s

    def _end(self, signal_number: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def launch(
    kind: str,
    command: Sequence[str | Path],
    bootstrap: str,
    data_dir: Path,
    log_path: Path,
    environment: Mapping[str, str] | None = None,
    brokers_count: int = 1,
) -> Broker:
    """Start ``command`` with its output in ``log_path``; return once it answers Metadata with that many brokers.

    Raises:
        BrokerDidNotStart: the process ended or did not respond within START_TIMEOUT_S.
    """
    started_s = time.perf_counter()
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    broker = Broker(
        kind, process, bootstrap, data_dir, log_path, environment=environment, brokers_count=brokers_count
    )
    try:
        _wait_until_it_answers(broker, started_s)
    except BaseException:
        broker.kill()
        raise
    return broker


def _wait_until_it_answers(broker: Broker, started_s: float) -> None:
    while (node_id := first_broker(broker.bootstrap, broker.brokers_count)) is None:
        if broker.process.poll() is not None:
            raise _did_not_start(broker, f"ended with status {broker.process.returncode}")
        if time.perf_counter() > started_s + START_TIMEOUT_S:
            raise _did_not_start(broker, f"gave no Metadata answer in {START_TIMEOUT_S:.0f} s")
        time.sleep(PROBE_INTERVAL_S)
    broker.start_s = time.perf_counter() - started_s
    broker.node_id = node_id


def _did_not_start(broker: Broker, what: str) -> BrokerDidNotStart:
    tail = "\n".join(broker.log_path.read_text(errors="replace").splitlines()[-20:])
    return BrokerDidNotStart(f"{broker.kind} on {broker.bootstrap} {what}; its last output:\n{tail}")


def first_broker(bootstrap: str, brokers_count: int = 1) -> int | None:
    """Return the id of the first broker in a Metadata response of ``host:port``.

    None without a response, or if it names fewer brokers.
    """
    try:
        found = describe_brokers(bootstrap)
    except (OSError, EOFError):
        return None
    return next(iter(found)) if len(found) >= max(brokers_count, 1) else None


def describe_brokers(bootstrap: str) -> dict[int, str]:
    """Return the id and the address of each broker in a Metadata response of ``host:port``.

    Raises:
        OSError, EOFError: there was no complete response.
    """
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(struct.pack(">i", len(_METADATA_BROKERS_ONLY)) + _METADATA_BROKERS_ONLY)
        (size_bytes,) = struct.unpack(">i", _read(connection, 4))
        response = io.BytesIO(_read(connection, size_bytes))
    _correlation_id, count = struct.unpack(">ii", response.read(8))
    return dict(_read_broker(response) for _ in range(count))


def _read_broker(response: io.BytesIO) -> tuple[int, str]:
    node_id, host_bytes = struct.unpack(">ih", response.read(6))
    host = response.read(host_bytes).decode()
    port, rack_bytes = struct.unpack(">ih", response.read(6))
    response.read(max(rack_bytes, 0))
    return node_id, f"{host}:{port}"


def _read(connection: socket.socket, size_bytes: int) -> bytes:
    received = b""
    while len(received) < size_bytes:
        chunk = connection.recv(size_bytes - len(received))
        if not chunk:
            raise EOFError
        received += chunk
    return received


#: Reserved ports, until this process ends.
_HELD: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Return different loopback ports that are reserved as long as this process lives.

    Each is held by a socket that is bound and does not listen. So the kernel assigns it to no other process, neither to
    listen on nor to connect from; but servers, which all set SO_REUSEADDR, can listen there repeatedly.
    """
    sockets = [_bound(0) for _ in range(count)]
    _HELD.extend(sockets)
    return [each.getsockname()[1] for each in sockets]


def consecutive_ports(count: int) -> int:
    """Return the first of `count` consecutive loopback ports, which are all reserved as by `free_ports`."""
    while True:
        with ExitStack() as attempt:
            first = attempt.enter_context(_bound(0))
            port = first.getsockname()[1]
            try:
                others = [attempt.enter_context(_bound(port + at)) for at in range(1, count)]
            except (OSError, OverflowError):
                continue
            attempt.pop_all()
        _HELD.extend([first, *others])
        return int(port)


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound to a loopback port, 0 for any free one.

    Raises:
        OSError: the port is in use.
        OverflowError: there is no such port.
    """
    bound = socket.socket()
    try:
        bound.bind(("127.0.0.1", port))
    except BaseException:
        bound.close()
        raise
    # Only now: with it, bind would also take a port that another process has reserved.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return bound


def shifted(address: str, number: int) -> str:
    """Return ``address``, which ends with a port, with its port counted up."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number}"
