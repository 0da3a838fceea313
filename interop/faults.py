"""Faults of processes, disks and the network in a cluster, while clients produce, consume and transform."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from interop import etcd
from interop.clients import KINDS, Client
from interop.etcd_clusters import BROKERS, MEMBERS, EtcdCluster
from interop.exactly_once import APPLICATIONS, transforming
from interop.load import (
    Acknowledged,
    Producing,
    end_offsets,
    longest_stall_s,
    producing,
    read_topic,
    violations,
)
from interop.relays import CLIENTS
from interop.topics import eventually

#: What clients of a test need beyond default settings; see tests/interop/test_exactly_once.py.
PROPERTIES = {
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
}
#: Replicas of each partition, the preferred leader first: broker 3 follows everywhere, and broker 1 is the controller.
ASSIGNMENT = [[2, 3, 1], [1, 2, 3], [2, 1, 3], [1, 3, 2]]
TARGETS = {"leader": "broker-2", "follower": "broker-3", "controller": "broker-1"}
ETCD_LEADER = "etcd leader"
RESTARTED = "restarted"
NO_FAULT = "none"
NO_FAULT_DURATION_S = 4.0  #: of a scenario that shows how long clients wait when all is well

RATE = 100  #: records a second of each producer
#: Records of each producer before the fault: franz-go does not fetch metadata again for 5 s after its start.
WARM_UP_COUNT = 700
PROGRESS_COUNT = 200  #: records after the fault
INPUTS_COUNT, INPUTS_RATE = 900, 40  #: of the application that transforms
STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Fault:
    """What happens to a process for some seconds."""

    name: str
    inject: Callable[[EtcdCluster, str], None]
    duration_s: float


def _kill(cluster: EtcdCluster, name: str) -> None:
    cluster.nodes[name].kill()


def _stop(cluster: EtcdCluster, name: str) -> None:
    process = cluster.nodes[name].process
    assert process is not None
    process.send_signal(signal.SIGSTOP)


def _cut_from(*others: str) -> Callable[[EtcdCluster, str], None]:
    return lambda cluster, name: cluster.network.cut(name, {*others} - {name})


def _fill_disk(cluster: EtcdCluster, name: str) -> None:
    cluster.volumes[name].fill()


#: A broker's session lasts 9 s after it was last kept alive: cuts are longer.
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("killed", _kill, 4),
        Fault("stopped", _stop, 4),
        Fault("cut off", _cut_from(*BROKERS, *MEMBERS, CLIENTS), 12),
        Fault("cut off except from clients", _cut_from(*BROKERS, *MEMBERS), 12),
        Fault("cut off from etcd", _cut_from(*MEMBERS), 12),
        Fault("disk full", _fill_disk, 8),
    )
}


def heal(cluster: EtcdCluster, name: str) -> None:
    """End whatever a fault has done; a process that has ended is started again."""
    cluster.network.heal()
    cluster.volumes[name].free()
    node = cluster.nodes[name]
    if node.process is None or node.process.poll() is not None:
        node.restart()
        cluster.register_pids()
    else:
        node.process.send_signal(signal.SIGCONT)


def strike(cluster: EtcdCluster, fault: Fault, target: str) -> None:
    """Inject a fault for its duration."""
    name = TARGETS.get(target) or etcd.leader(cluster.members).name
    fault.inject(cluster, name)
    try:
        time.sleep(fault.duration_s)
    finally:
        heal(cluster, name)


def restart_in_order(cluster: EtcdCluster) -> None:
    """Restart each broker, the next one when all replicas are in sync again."""
    for broker in cluster.brokers:
        broker.restart()
        cluster.register_pids()
        wait_for_replicas(cluster)


def wait_for_replicas(cluster: EtcdCluster) -> None:
    """Wait until every replica of every topic is in sync."""
    etcd.wait_until_healthy(cluster.members)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def in_sync_counts() -> set[int]:
        topics = admin.list_topics(timeout=10).topics.values()
        return {len(partition.isrs) for topic in topics for partition in topic.partitions.values()}

    eventually(lambda: in_sync_counts() == {len(BROKERS)})


def create_topics(cluster: EtcdCluster, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [NewTopic(name, len(ASSIGNMENT), replica_assignment=ASSIGNMENT) for name in names]
    for created in admin.create_topics(topics).values():
        created.result()
    wait_for_replicas(cluster)


@contextmanager
def consuming(cluster: EtcdCluster, kind: str, topic: str, directory: Path) -> Iterator[Client]:
    """Run a member of a group that reads a topic."""
    client = Client(KINDS[kind], cluster.bootstrap, directory / f"{kind}-consumer.log")
    try:
        client.do("join_group", topic=topic, group=f"{topic}-readers", strategy="range", protocol="classic")
        yield client
    finally:
        client.close()


def wait_for_progress(producers: Sequence[Producing], count: int) -> None:
    """Wait until each producer has sent some more records."""
    wanted = {each: each.count + count for each in producers}
    eventually(lambda: all(each.count >= count for each, count in wanted.items()))


def wait_until_consumed(consumer: Client, acknowledged: Sequence[Acknowledged]) -> set[str]:
    """Wait until a member of a group has read all acknowledged records; return the values that it has read."""
    values = {record.value for record in acknowledged}
    eventually(lambda: values <= set(consumer.do("membership")["values"]))
    return set(consumer.do("membership")["values"])


@dataclass
class Result:
    """What clients saw of a scenario."""

    scenario: "Scenario"
    stalls_s: dict[str, float] = field(
        default_factory=dict
    )  #: producer -> its longest stall since the fault began
    acknowledged: list[Acknowledged] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def add(self, producer: Producing, fault_ms: int) -> None:
        """Add what a producer has reported; records that have failed are violations.

        :param fault_ms: When the fault began.
        """
        acknowledged, errors = producer.results()
        self.acknowledged += acknowledged
        self.violations += errors
        self.stalls_s[producer.name] = longest_stall_s(
            [record for record in acknowledged if record.acknowledged_ms >= fault_ms]
        )


@dataclass(frozen=True)
class Scenario:
    """A fault and its target, and the client that consumes, and that transforms in transactions."""

    fault: str
    target: str
    application: str
    warm_up_count: int = WARM_UP_COUNT
    inputs_count: int = INPUTS_COUNT

    def __str__(self) -> str:
        return f"{self.target} {self.fault}".replace(" ", "-")

    def run(self, cluster: EtcdCluster, directory: Path) -> Result:
        """Run it; return what clients saw."""
        result = Result(self)
        topic = str(self)
        transformed = (f"{topic}-in", f"{topic}-out")
        bootstrap = cluster.bootstrap
        create_topics(cluster, topic, *transformed)
        with (
            producing(bootstrap, topic, RATE, directory) as producers,
            consuming(cluster, self.application, topic, directory) as consumer,
            transforming(
                bootstrap, self.application, transformed, self.inputs_count, INPUTS_RATE, directory
            ) as transformation,
        ):
            wait_for_progress(producers, self.warm_up_count)
            eventually(lambda: sum(end_offsets(bootstrap, transformed[1]).values()) > 0)
            fault_ms = time.time_ns() // 1_000_000
            self._happen(cluster)
            wait_for_replicas(cluster)
            wait_for_progress(producers, PROGRESS_COUNT)
            for each in producers:
                each.stop(STOP_TIMEOUT_S)
                result.add(each, fault_ms)
            consumed = wait_until_consumed(consumer, result.acknowledged)
            result.violations += filter(None, [transformation.problems()])
        log = read_topic(bootstrap, topic)
        result.violations += violations(result.acknowledged, log)
        result.violations += [f"lost read: {value}" for value in consumed - set(log.values())]
        return result

    def _happen(self, cluster: EtcdCluster) -> None:
        if self.fault == NO_FAULT:
            time.sleep(NO_FAULT_DURATION_S)
        elif self.fault == RESTARTED:
            restart_in_order(cluster)
        else:
            strike(cluster, FAULTS[self.fault], self.target)


def scenarios() -> list[Scenario]:
    """Return every fault with every target; the applications take turns."""
    pairs = [
        (fault, target)
        for fault in FAULTS
        for target in (*TARGETS, ETCD_LEADER)
        # no client has a connection to etcd
        if (fault, target) != ("cut off except from clients", ETCD_LEADER)
    ]
    pairs += [(RESTARTED, "all brokers in order"), (NO_FAULT, "none")]
    return [Scenario(*pair, application) for pair, application in zip(pairs, cycle(APPLICATIONS))]
