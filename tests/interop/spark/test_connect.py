"""Spark Connect: a client without JVM and Barnabas uses a server that has both."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker, free_ports
from interop.clients import Client
from interop.topics import make_topic

from support.spark_cluster import running_connect
from support.spark_topics import fill

PROGRAM = """
import sys
from pyspark.sql import SparkSession

url, bootstrap, topic, copy, checkpoint = sys.argv[1:]
session = SparkSession.builder.remote(url).getOrCreate()

def options(way, topic_option, topic):
    return way.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option(topic_option, topic)

source = options(session.read, "subscribe", topic).load()
print(source.count(), source.selectExpr("sum(length(value))").first()[0])
options(source.select("key", "value").write, "topic", copy).mode("append").save()
changes = options(session.readStream, "subscribe", topic).option("startingOffsets", "earliest").load()
query = (
    options(changes.select("key", "value").writeStream, "topic", copy)
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination(120)
print(options(session.read, "subscribe", copy).option("kafka.isolation.level", "read_committed").load().count())
session.stop()
"""


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    [port] = free_ports(1)
    with running_connect(tmp_path_factory.mktemp("connect"), port, {}) as url:
        yield url


def test_a_client_reads_and_writes_and_streams(
    connect: str, broker: Broker, helper: Client, tmp_path: Path
) -> None:
    topic, copy = make_topic(helper, "connect-in", 2, retention_ms="-1"), make_topic(helper, "connect-out", 2)
    fill(broker.bootstrap, topic, partitions=2, per_partition=1_000)
    length = sum(
        len(f"value {partition} {number}") for partition in range(2) for number in range(1_000) if number % 11
    )
    program = tmp_path / "client.py"
    program.write_text(PROGRAM)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "JAVA_HOME")}
    ended = subprocess.run(
        [sys.executable, str(program), connect, broker.bootstrap, topic, copy, str(tmp_path / "checkpoint")],
        env={**environment, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert ended.stdout.split() == ["2000", str(length), "4000"]
