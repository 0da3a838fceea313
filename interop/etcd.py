"""Members of etcd as child processes on free loopback ports, for tests and for `make cluster`."""

import contextlib
import http.client
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interop.brokers import free_ports

#: Debian's package, and its program.
PACKAGE, PROGRAM = "etcd-server", "etcd"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
PROBE_INTERVAL_S = 0.05

#: What a cluster of Barnabas needs beyond etcd's defaults; see docs/design/etcd.md.
SETTINGS = (
    "--max-txn-ops=10000",
    "--max-request-bytes=16777216",
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=1h",
)


@dataclass
class Member:
    """A member: its command, its ports for clients and for its health, and its process while it runs."""

    name: str
    command: Sequence[str]
    port: int
    health_port: int
    log_path: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it responds once a majority has been started."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def restart(self) -> None:
        """Kill the process, and start it again on its data."""
        self.kill()
        self.start()

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End the process like a power failure."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def is_healthy(self) -> bool:
        """Return whether the member belongs to a majority."""
        return b"true" in self._response(self.health_port, "GET", "/health")

    def status(self) -> dict[str, Any]:
        """Return its answer to a status request; empty without one."""
        return dict(json.loads(self._response(self.port, "POST", "/v3/maintenance/status", "{}") or "{}"))

    def _response(self, port: int, method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request(method, path, body)
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return b""
        finally:
            connection.close()


def installed() -> str:
    """Return the program.

    Raises:
        RuntimeError: it is not installed.
    """
    if (program := shutil.which(PROGRAM)) is None:
        raise RuntimeError(f"there is no {PROGRAM}: on Debian it is in the package {PACKAGE}")
    return program


def plan(
    data: Path,
    ports: Sequence[int],
    settings: Sequence[str] = SETTINGS,
    *,
    scheme: str = "http",
    relay: Callable[[str, int], int] = lambda name, port: port,
) -> list[Member]:
    """Return the members of a cluster; none is started.

    Args:
        ports: three for each member: for clients, for other members, for its health.
        relay: (name of a member, its port for other members) -> the port under which they reach it.
    """
    by_name = {
        f"etcd-{at // 3 + 1}": (ports[at], ports[at + 1], ports[at + 2]) for at in range(0, len(ports), 3)
    }
    reached = {name: relay(name, peer) for name, (_, peer, _) in by_name.items()}
    cluster = ",".join(f"{name}=http://127.0.0.1:{peer}" for name, peer in reached.items())
    members = []
    for name, (client, peer, health) in by_name.items():
        command = [
            installed(),
            f"--name={name}",
            f"--data-dir={data / name}",
            f"--listen-client-urls={scheme}://127.0.0.1:{client}",
            f"--advertise-client-urls={scheme}://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{reached[name]}",
            f"--listen-metrics-urls=http://127.0.0.1:{health}",
            f"--initial-cluster={cluster}",
            *settings,
        ]
        members.append(Member(name, command, client, health, data / f"{name}.log"))
    return members


def wait_until_healthy(members: Sequence[Member]) -> None:
    """Return once all members respond.

    Raises:
        RuntimeError: one does not; the message quotes its output.
    """
    end_s = time.monotonic() + START_TIMEOUT_S
    for member in members:
        while not member.is_healthy():
            if member.process is None or member.process.poll() is not None or time.monotonic() > end_s:
                tail = "\n".join(member.log_path.read_text(errors="replace").splitlines()[-10:])
                raise RuntimeError(f"{member.name} does not respond; its last output:\n{tail}")
            time.sleep(PROBE_INTERVAL_S)


def leader(members: Sequence[Member]) -> Member:
    """Return the leader, as any of the members knows it.

    Raises:
        RuntimeError: none of them knows one.
    """
    for member in members:
        status = member.status()
        for other in members:
            if status and other.status().get("header", {}).get("member_id") == status.get("leader"):
                return other
    raise RuntimeError("etcd has no leader")


def stop(members: Sequence[Member]) -> None:
    """Stop all members at the same time: a single one would first look for another leader."""
    processes = [member.process for member in members if member.process is not None]
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def running(
    data: Path, count: int = 1, settings: Sequence[str] = SETTINGS, *, scheme: str = "http"
) -> Iterator[list[Member]]:
    """Run members of a new cluster, and kill them in the end."""
    members = plan(data, free_ports(3 * count), settings, scheme=scheme)
    try:
        for member in members:
            member.start()
        wait_until_healthy(members)
        yield members
    finally:
        for member in members:
            member.kill()


def url(members: Sequence[Member], *, scheme: str = "etcd", prefix: str = "barnabas") -> str:
    """Return the store's URL for `barnabas serve --store`."""
    return f"{scheme}://{','.join(f'127.0.0.1:{member.port}' for member in members)}/{prefix}"
