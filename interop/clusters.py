"""Several brokers of either kind as child processes that form a cluster."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from interop import candidate, reference
from interop.brokers import Broker, free_ports, launch, shifted

#: Internal topics have a replica on each broker.
REPLICATED = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


@dataclass
class Cluster:
    """Running brokers; the broker with node id N is the Nth."""

    kind: str
    brokers: list[Broker]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def broker(self, node_id: int) -> Broker:
        return self.brokers[node_id - 1]

    def stop(self) -> None:
        """Stop all brokers at the same time."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(Broker.stop, self.brokers))


def start_barnabas(home: Path, count: int = 3, properties: Mapping[str, str] | None = None) -> Cluster:
    """Start brokers over one SQLite store; broker N has its data in ``home/N/data``."""
    brokers: list[Broker] = []
    try:
        for node_id in range(1, count + 1):
            settings = {
                **REPLICATED,
                "node.id": str(node_id),
                "barnabas.store": f"sqlite:{home / 'store.db'}",
                **(properties or {}),
            }
            brokers.append(candidate.start(home / str(node_id), settings))
    except BaseException:
        for broker in brokers:
            broker.kill()
        raise
    return Cluster("barnabas", brokers)


def start_kafka(
    home: Path,
    count: int = 3,
    properties: Mapping[str, str] | None = None,
    listeners: Sequence[str] = (),
) -> Cluster:
    """Start brokers that are controllers, too; broker N has its data in ``home/N/data``.

    ``listeners`` are additional ones of the first broker, as NAME://HOST:PORT; the ports of the others count up.
    """
    ports, controller_ports = free_ports(count), free_ports(count)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controller_ports, 1))
    cluster_id = reference.new_cluster_id()

    def start(node_id: int) -> Broker:
        data_dir = home / str(node_id) / "data"
        data_dir.mkdir(parents=True)
        bootstrap = f"127.0.0.1:{ports[node_id - 1]}"
        config = data_dir.parent / "server.properties"
        controller = f"CONTROLLER://127.0.0.1:{controller_ports[node_id - 1]}"
        reference.write_properties(
            config,
            reference.SERVER_PROPERTIES
            | REPLICATED
            | {
                "node.id": str(node_id),
                "listeners": ",".join(
                    [
                        f"PLAINTEXT://{bootstrap}",
                        controller,
                        *(shifted(each, node_id - 1) for each in listeners),
                    ]
                ),
                "controller.quorum.voters": voters,
                "log.dirs": str(data_dir),
            }
            | dict(properties or {}),
        )
        reference.tool("kafka-storage", "format", "--cluster-id", cluster_id, "--config", config)
        command = reference.java(
            *reference.SERVER_JVM_OPTIONS, "kafka.Kafka", config, log4j="log4j2.properties"
        )
        log = data_dir.parent / "kafka.log"
        broker = launch("kafka", command, bootstrap, data_dir, log, brokers_count=count)
        broker.node_id = node_id  # the first in a response may be any of them
        return broker

    with ThreadPoolExecutor(count) as pool:
        started = [pool.submit(start, node_id) for node_id in range(1, count + 1)]
    if any(each.exception() for each in started):
        for each in started:
            if each.exception() is None:
                each.result().kill()
    return Cluster("kafka", [each.result() for each in started])


START: Mapping[str, Callable[[Path, int, Mapping[str, str] | None], Cluster]] = {
    "kafka": start_kafka,
    "barnabas": start_barnabas,
}


@contextlib.contextmanager
def running(kind: str, count: int = 3, properties: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Run a cluster in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"{kind}-cluster-") as home:
        cluster = START[kind](Path(home), count, properties)
        try:
            yield cluster
        finally:
            cluster.stop()
