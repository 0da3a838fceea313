"""Three brokers over three members of etcd as processes, with relays between them and volumes of their own."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from interop import candidate, etcd
from interop.brokers import Broker, free_ports
from interop.clusters import REPLICATED
from interop.relays import Network
from interop.volumes import Volume

COUNT = 3
BROKERS = tuple(f"broker-{number}" for number in range(1, COUNT + 1))
MEMBERS = tuple(f"etcd-{number}" for number in range(1, COUNT + 1))
VOLUME_BYTES = 256 << 20


class Node(Protocol):
    """A broker or a member of etcd."""

    process: subprocess.Popen[bytes] | None

    @property
    def pid(self) -> int: ...
    def kill(self) -> object: ...
    def restart(self) -> None: ...


class EtcdCluster:
    """Running brokers and members, by name."""

    def __init__(self, home: Path, stack: contextlib.ExitStack, properties: Mapping[str, str]) -> None:
        """:param stack: Ends the processes, and removes what was made, when it is closed."""
        self.network = Network()
        stack.callback(self.network.close)
        self.volumes: dict[str, Volume] = {}
        for name, path in (
            *((name, home / name / "data") for name in BROKERS),
            *((name, home / name) for name in MEMBERS),
        ):
            self.volumes[name] = Volume(path, VOLUME_BYTES)
            stack.callback(self.volumes[name].close)
        self.members = self._start_members(home, stack)
        self.brokers = self._start_brokers(home, stack, properties)
        self.nodes: dict[str, Node] = {
            **dict(zip(BROKERS, self.brokers, strict=True)),
            **dict(zip(MEMBERS, self.members, strict=True)),
        }
        self.register_pids()

    def _start_members(self, home: Path, stack: contextlib.ExitStack) -> list[etcd.Member]:
        members = etcd.plan(home, free_ports(3 * COUNT), relay=self.network.relay)
        for member in members:
            stack.callback(member.kill)
            member.start()
        etcd.wait_until_healthy(members)
        return members

    def _start_brokers(
        self, home: Path, stack: contextlib.ExitStack, properties: Mapping[str, str]
    ) -> list[Broker]:
        stores = [f"127.0.0.1:{self.network.relay(member.name, member.port)}" for member in self.members]
        ports = free_ports(COUNT)
        relays = [self.network.relay(name, port) for name, port in zip(BROKERS, ports, strict=True)]
        self.bootstrap = ",".join(f"127.0.0.1:{relay}" for relay in relays)
        brokers = []
        for at, name in enumerate(BROKERS):
            settings = {
                **REPLICATED,
                "node.id": str(at + 1),
                "barnabas.store": f"etcd://{','.join([*stores[at:], *stores[:at]])}/barnabas",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{relays[at]}",
                **properties,
            }
            brokers.append(candidate.start(home / name, settings, ports[at]))
            stack.callback(brokers[-1].kill)
        return brokers

    def register_pids(self) -> None:
        """Report the processes to the network after a start."""
        self.network.pids.update({name: node.pid for name, node in self.nodes.items() if node.process})


@contextlib.contextmanager
def running(properties: Mapping[str, str]) -> Iterator[EtcdCluster]:
    """Run a cluster in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="etcd-cluster-") as home, contextlib.ExitStack() as stack:
        yield EtcdCluster(Path(home), stack, properties)
