"""Speculation: Spark runs copies of slow tasks, and takes the one that ends first."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import free_ports

from barnabas.testing import EmbeddedBroker
from support.spark import SETTINGS, worker_environment
from support.spark_cluster import Cluster, running_cluster
from support.spark_topics import committed_values

PARTITIONS_COUNT = 4
RECORDS_COUNT = 2_000
#: A task is copied once a quarter of the tasks have ended and it has run for two seconds.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.interval": "100ms",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": worker_environment()["PYTHONPATH"],
}

#: Attempts of task 0 wait for each other; task 3 keeps the stage open until both have ended, or been killed.
PROGRAM = """
import json
import sys
from pathlib import Path
from pyspark.sql import SparkSession

bootstrap, topic, copy, home, slow = sys.argv[1:]
session = SparkSession.builder.getOrCreate()
log = Path(home, "attempts")
log.touch()

def options(way, topic_option, name):
    return way.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option(topic_option, name)

def waiting(rows):
    import time
    from pyspark import TaskContext
    context = TaskContext.get()
    task = context.partitionId(), context.attemptNumber()

    def note(what):
        with log.open("a") as output:
            output.write(f"{task[0]}.{task[1]} {what};")

    def wait_for(what, seconds):
        end_s = time.monotonic() + seconds
        while what not in log.read_text() and time.monotonic() < end_s:
            time.sleep(0.02)

    note("starts")
    if task == (0, 0):
        wait_for("0.1 ends" if slow == "first" else "0.1 starts", 60)
    if task == (0, 1) and slow == "copy":
        wait_for("0.0 ends", 60)
    yield from list(rows)
    note("ends")
    if task == (3, 0):
        wait_for("0.1 ends" if slow == "first" else "0.0 ends", 60)
        wait_for("0.0 ends" if slow == "first" else "0.1 ends", 5)

stream = options(session.readStream, "subscribe", topic).option("startingOffsets", "earliest").load()
slowed = stream.select("value", "partition").mapInArrow(waiting, "value binary, partition int")
query = (
    options(slowed.writeStream, "topic", copy)
    .option("checkpointLocation", f"{home}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
attempts = log.read_text().split(";")
log.write_text("")
read = options(session.read, "subscribe", topic).load().select("value").mapInArrow(waiting, "value binary")
values = sorted(int(value) for value, in read.collect())
print(json.dumps({"attempts": attempts, "read": values}))
session.stop()
"""


@pytest.fixture(scope="module")
def wide_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster with a core more than the tasks that wait."""
    [port] = free_ports(1)
    with running_cluster(tmp_path_factory.mktemp("wide"), port, workers_count=3) as running:
        yield running


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with EmbeddedBroker(settings) as running:
        yield running


def run(cluster: Cluster, home: Path, *arguments: str) -> dict[str, list[object]]:
    (home / "program.py").write_text(PROGRAM)
    settings = {**SETTINGS, **SPECULATION}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submit = [sys.executable, "-m", "barnabas", "spark-submit"]
    ended = subprocess.run(
        [*submit, "--master", cluster.url, *options, str(home / "program.py"), *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-8000:]
    found: dict[str, list[object]] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.long
@pytest.mark.parametrize("slow", ["first", "copy"])
def test_records_are_read_and_written_once_whichever_attempt_is_slower(
    wide_cluster: Cluster, embedded: EmbeddedBroker, tmp_path: Path, slow: str
) -> None:
    topic, copy = f"speculated-{slow}", f"speculated-{slow}-copy"
    for name in (topic, copy):
        embedded.create_topic(name, PARTITIONS_COUNT)
    with embedded.client.producer() as producer:
        for number in range(RECORDS_COUNT):
            producer.send(topic, str(number).encode(), partition=number % PARTITIONS_COUNT)
    found = run(wide_cluster, tmp_path, embedded.bootstrap, topic, copy, str(tmp_path), slow)
    assert "0.1 starts" in found["attempts"]
    assert found["read"] == list(range(RECORDS_COUNT))
    assert committed_values(embedded.bootstrap, copy) == sorted(map(str, range(RECORDS_COUNT)))
