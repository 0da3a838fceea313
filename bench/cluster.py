"""Measure clusters of Apache Kafka and Barnabas in turns: ``python -m bench.cluster [--rounds N] [--only NAME]``.

Topics have three replicas, and producers wait for all in-sync replicas (acks=all), unless the measure says otherwise.
"""

import argparse
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from interop.clusters import START, Cluster, running

from barnabas.base.plurals import plural
from bench import load
from bench.measures import Measured, Metric
from bench.process import cpu_s
from bench.report import Result, machine, table

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks-cluster.md"

TIMEOUT_S = 120.0
PRODUCED_PARTITIONS_COUNT = 12
PRODUCE_INTERVAL_S = 0.005
MANY_TOPICS, PARTITIONS_EACH = 100, 100
TOPICS_IN_A_REQUEST = 25
IDLE_S = 20.0


@dataclass(frozen=True)
class Measure:
    """A measurement of a fresh cluster, and its metrics by name."""

    name: str
    run: Callable[[Cluster], Measured]
    metrics: Mapping[str, Metric]
    brokers_count: int = 3


def cluster_cpu_s(cluster: Cluster) -> float:
    return sum(cpu_s(broker.pid) for broker in cluster.brokers)


def create_topics(cluster: Cluster, prefix: str, count: int, partitions: int, replicas: int = 3) -> None:
    """Create topics, some in each request: Kafka refuses requests with 10,000 partitions."""
    names = [f"{prefix}{number}" for number in range(count)]
    options = ["--partitions", str(partitions), "--replication-factor", str(replicas)]
    for start in range(0, count, TOPICS_IN_A_REQUEST):
        some = names[start : start + TOPICS_IN_A_REQUEST]
        load.administer(cluster.bootstrap, "topics", "create", *some, *options)


# Replication


def produce(cluster: Cluster) -> Measured:
    """Return the CPU time of all brokers per record of the Java producer, in microseconds."""
    create_topics(cluster, "produced-", 1, PRODUCED_PARTITIONS_COUNT)
    measured = {}
    for name, size_bytes, count in (("100 B", 100, 2_000_000), ("1 KiB", 1024, 500_000)):
        load.produce_with_java(cluster.bootstrap, "produced-0", count // 4, size_bytes)
        before_s = cluster_cpu_s(cluster)
        load.produce_with_java(cluster.bootstrap, "produced-0", count, size_bytes)
        measured[name] = (cluster_cpu_s(cluster) - before_s) / count * 1e6
    return measured


def throughput(cluster: Cluster) -> Measured:
    """Return the records per second that one Java producer sends to partitions with one replica, on all brokers."""
    create_topics(cluster, "spread-", 1, PRODUCED_PARTITIONS_COUNT, replicas=1)
    load.produce_with_java(cluster.bootstrap, "spread-0", 500_000, 100)
    return {"rate": load.produce_with_java(cluster.bootstrap, "spread-0", 4_000_000, 100)}


# Failover


class SteadyProducer:
    """Sends a record to one partition every few milliseconds, with librdkafka's defaults."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._topic = topic
        self.acknowledged_s: list[float] = []
        self.failures: list[str] = []
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._is_stopped.set()
            self._thread.join()
            self._producer.flush(TIMEOUT_S)

    def _run(self) -> None:
        while not self._is_stopped.wait(PRODUCE_INTERVAL_S):
            self._producer.produce(self._topic, b"value", partition=0, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: object, _message: object) -> None:
        if error is None:
            self.acknowledged_s.append(time.monotonic())
        else:
            self.failures.append(str(error))


def stall_of_producers(cluster: Cluster) -> Measured:
    """Kill the leader of a partition (SIGKILL); return how long its producer gets no acknowledgement."""
    create_topics(cluster, "led-", 1, 1)
    producer = SteadyProducer(cluster.bootstrap, "led-0")
    with producer.running():
        wait_until(lambda: len(producer.acknowledged_s) >= 200)
        leader = leaders(cluster, cluster.bootstrap, "led-")[0]
        killed_s = time.monotonic()
        cluster.broker(leader).kill()
        wait_until(lambda: sum(at_s > killed_s + 0.05 for at_s in producer.acknowledged_s) >= 200)
    if producer.failures:
        raise SystemExit(f"{cluster.kind}: {len(producer.failures)} records failed: {producer.failures[0]}")
    times = [at_s for at_s in producer.acknowledged_s if at_s > killed_s - 0.5]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    return {"stall": max(gaps)}


# Many partitions


def many_partitions(cluster: Cluster) -> Measured:
    """Create 10,000 partitions, let the cluster idle, and kill a broker that leads a third of them."""
    started_s = time.monotonic()
    create_topics(cluster, "many-", MANY_TOPICS, PARTITIONS_EACH)
    for broker in cluster.brokers:
        wait_until(lambda broker=broker: is_led(leaders(cluster, broker.bootstrap, "many-")))  # type: ignore[misc]
    creation_s = time.monotonic() - started_s
    time.sleep(IDLE_S / 2)
    before_s = cluster_cpu_s(cluster)
    time.sleep(IDLE_S)
    idle = (cluster_cpu_s(cluster) - before_s) / IDLE_S
    survivor = cluster.broker(1).bootstrap
    killed_s = time.monotonic()
    cluster.broker(2).kill()
    wait_until(lambda: is_led(found := leaders(cluster, survivor, "many-")) and 2 not in found)
    return {"creation": creation_s, "idle": idle * 100, "failover": time.monotonic() - killed_s}


def is_led(found: list[int]) -> bool:
    return len(found) == MANY_TOPICS * PARTITIONS_EACH and -1 not in found


def leaders(cluster: Cluster, bootstrap: str, prefix: str) -> list[int]:
    """Return the leaders of all partitions of topics with this prefix, according to one broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        topics = admin.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException:
        return []
    return [
        partition.leader
        for name, topic in sorted(topics.items())
        if name.startswith(prefix)
        for partition in topic.partitions.values()
    ]


def wait_until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError
        time.sleep(0.01)


MEASURES = [
    Measure(
        "produce",
        produce,
        {
            "100 B": Metric("CPU of the cluster per replicated record of 100 B", "µs", 0.7),
            "1 KiB": Metric("CPU of the cluster per replicated record of 1 KiB", "µs", 0.7),
        },
    ),
    *(
        Measure(
            f"throughput-{count}",
            throughput,
            {
                "rate": Metric(
                    f"records of 100 B without replicas, {count} broker{'s' * (count > 1)}",
                    "/s",
                    None,
                    more_is_better=True,
                )
            },
            count,
        )
        for count in (1, 2, 4)
    ),
    Measure(
        "stall",
        stall_of_producers,
        {"stall": Metric("no acknowledgement after the death of a leader (SIGKILL)", "s", 1.0)},
    ),
    Measure(
        "many",
        many_partitions,
        {
            "creation": Metric("creation of 10,000 partitions", "s", 1.0),
            "idle": Metric("CPU of an idle cluster with 10,000 partitions", "% of a core", 1.0),
            "failover": Metric("new leaders for the 3,300 partitions of a killed broker", "s", 1.0),
        },
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[measure.name for measure in MEASURES])
    options = parser.parse_args()
    results: list[Result] = []
    for measure in MEASURES:
        if measure.name not in (options.only or [measure.name]):
            continue
        rounds: dict[str, list[Measured]] = {kind: [] for kind in START}
        for number in range(options.rounds):
            for kind in START if number % 2 == 0 else reversed(START):
                with running(kind, measure.brokers_count) as cluster:
                    rounds[kind].append(measure.run(cluster))
                print(measure.name, f"{number + 1}/{options.rounds}", kind, rounds[kind][-1], flush=True)
        results += [
            Result(metric, *([each[name] for each in rounds[kind]] for kind in ("kafka", "barnabas")))
            for name, metric in measure.metrics.items()
        ]
    report = table(results, "Kafka", "Barnabas", "Barnabas / Kafka")
    print(report)
    if not options.only:
        DOCUMENT.write_text(document(report, options.rounds))
    return 0


def document(report: str, rounds: int) -> str:
    where = "\n".join(f"- {name}: {value}" for name, value in machine().items())
    return f"""# Benchmarks of clusters

Generated by `make bench-cluster` (`bench/cluster.py`). Three brokers of Apache Kafka, which are its controllers, too,
and three of Barnabas over one SQLite store run in turns, {plural(rounds, "round")} each, on the same machine as the
clients. Unless a row says otherwise, topics have three replicas; producers use acks=all. The table shows medians, with
the lowest and highest in parentheses.

{where}

{report}
"""


if __name__ == "__main__":
    sys.exit(main())
