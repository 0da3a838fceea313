"""Real clients produce to three brokers, which are killed and restarted meanwhile."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from interop.clients import Clients
from interop.clusters import Cluster, running
from interop.reference import tool
from interop.topics import eventually

#: Idempotent producers.
PRODUCERS = ("java", "confluent-kafka", "franz-go")
BATCH_RECORDS_COUNT = 50
BATCHES_BETWEEN_FAULTS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running("barnabas") as running_cluster:
        yield running_cluster


class Load:
    """Producers that send one batch after the other, each to its own partition of a topic."""

    def __init__(self, clients: Clients, topic: str) -> None:
        self._clients = clients
        self._topic = topic
        self._is_stopped = threading.Event()
        self.acknowledged: dict[str, list[str]] = {name: [] for name in PRODUCERS}

    def run(self, name: str) -> None:
        try:
            self._produce(name)
        finally:
            self.stop()  # a failed producer makes no progress: its error ends the test

    def _produce(self, name: str) -> None:
        partition, acknowledged = PRODUCERS.index(name), self.acknowledged[name]
        while not self._is_stopped.is_set():
            values = [f"{name} {len(acknowledged) + number}" for number in range(BATCH_RECORDS_COUNT)]
            records = [{"key": None, "value": value} for value in values]
            self._clients[name].do(
                "produce",
                topic=self._topic,
                partition=partition,
                records=records,
                codec="none",
                idempotent=True,
            )
            acknowledged.extend(values)

    def wait_for_progress(self) -> None:
        """Wait until each producer has sent some more batches."""
        wanted = {
            name: len(values) + BATCHES_BETWEEN_FAULTS * BATCH_RECORDS_COUNT
            for name, values in self.acknowledged.items()
        }
        eventually(
            lambda: (
                self._is_stopped.is_set()
                or all(len(self.acknowledged[name]) >= count for name, count in wanted.items())
            )
        )

    def stop(self) -> None:
        self._is_stopped.set()


def in_sync_counts(admin: AdminClient, topic: str) -> set[int]:
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
    return {len(partition.isrs) for partition in partitions}


def printed_log(data_dir: Path, partition: int) -> list[str]:
    """Return the batches and records of a log as DumpLogSegments prints them."""
    files = sorted((data_dir / f"replicated-{partition}").glob("*.log"))
    printed = tool(
        "kafka-dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))
    )
    return [line for line in printed.stdout.splitlines() if re.match(r"baseOffset|\| offset", line.lstrip())]


def test_every_acknowledged_record_is_on_three_equal_logs_once(cluster: Cluster, tmp_path: Path) -> None:
    """Brokers 2 and 3 are killed (SIGKILL), and stopped in order, while clients that know broker 1 produce."""
    admin = AdminClient({"bootstrap.servers": cluster.broker(1).bootstrap})
    topic = NewTopic("replicated", len(PRODUCERS), 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])["replicated"].result()
    clients = Clients(cluster.broker(1).bootstrap, tmp_path)
    load = Load(clients, "replicated")
    with ThreadPoolExecutor(len(PRODUCERS)) as pool:
        producing = [pool.submit(load.run, name) for name in PRODUCERS]
        try:
            load.wait_for_progress()
            for node_id in (2, 3):
                broker = cluster.broker(node_id)
                broker.kill()
                load.wait_for_progress()
                broker.restart()
                eventually(lambda: in_sync_counts(admin, "replicated") == {3})
                broker.restart()
                eventually(lambda: in_sync_counts(admin, "replicated") == {3})
                load.wait_for_progress()
        finally:
            load.stop()
            for each in producing:
                each.result()
    for partition, name in enumerate(PRODUCERS):
        acknowledged = load.acknowledged[name]
        read = clients["confluent-kafka"].do(
            "consume", topic="replicated", partition=partition, count=len(acknowledged)
        )
        assert Counter(record["value"] for record in read) == Counter(acknowledged), name
    clients.close()
    eventually(lambda: in_sync_counts(admin, "replicated") == {3})
    cluster.stop()
    for partition in range(len(PRODUCERS)):
        one, two, three = (printed_log(broker.data_dir, partition) for broker in cluster.brokers)
        assert one
        assert one == two == three
