"""Spark Connect: clients with pyspark-client alone use a server that has Barnabas, and runs on a cluster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from interop.brokers import Broker, free_ports
from interop.clients import Client
from interop.topics import make_topic

from interop import connect_client
from support.spark import SETTINGS
from support.spark_cluster import CONNECT, Cluster, bare_environment, running, running_connect
from support.spark_topics import committed_values, fill

PROGRAM = """
import sys
from importlib.util import find_spec
from pyspark.sql import SparkSession

url, bootstrap, topic, copy, checkpoint = sys.argv[1:]
session = SparkSession.builder.remote(url).getOrCreate()

def options(way, topic_option, topic):
    return way.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option(topic_option, topic)

print(find_spec("barnabas") is None, find_spec("pyspark.core") is None)
source = options(session.read, "subscribe", topic).load()
print(source.count(), source.selectExpr("sum(length(value))").first()[0])
for batch_id in (0, 0):  # the second one finds that the first is complete
    once = options(source.select("key", "value").write, "topic", copy).option("delivery", "exactly-once")
    once.options(sinkName=f"of-{copy}", batchId=batch_id).mode("append").save()
changes = options(session.readStream, "subscribe", topic).option("startingOffsets", "earliest").load()
for run in range(2):  # the second one has nothing to write
    query = (
        options(changes.select("key", "value").writeStream, "topic", copy)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
session.stop()
"""

#: What users see who write `subscribe` wrongly, or whose server has no Barnabas.
FAILING = """
import sys
from pyspark.sql import SparkSession

url, name, bootstrap = sys.argv[1:]
session = SparkSession.builder.remote(url).getOrCreate()
try:
    session.read.format(name).option("kafka.bootstrap.servers", bootstrap).load().count()
except Exception as error:
    print(error)
"""


@pytest.fixture(scope="module")
def client() -> Path:
    """Return an interpreter with pyspark-client, and without Barnabas and Java."""
    return connect_client.python()


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server in local mode."""
    [port] = free_ports(1)
    with running_connect(tmp_path_factory.mktemp("connect"), port, {}) as url:
        yield url


@pytest.fixture
def connect_on_cluster(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """Run a server with `barnabas spark-submit`, which sends the packages to the workers of a cluster."""
    [port] = free_ports(1)
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": "INFO",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    program = [sys.executable, "-m", "barnabas", "spark-submit"]
    command = [*program, "--master", cluster.url, *options, "--class", CONNECT, "spark-internal"]
    environment = {**bare_environment(), "PYSPARK_PYTHON": sys.executable}
    with ExitStack() as stack:
        stack.enter_context(
            running(command, tmp_path / "connect.log", environment, "Spark Connect server started")
        )
        yield f"sc://127.0.0.1:{port}"


def run(client: Path, home: Path, program: str, *arguments: str) -> str:
    """Run a program of a client; return its output."""
    file = home / "client.py"
    file.write_text(program)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "JAVA_HOME")}
    ended = subprocess.run(
        [str(client), str(file), *arguments],
        env={**environment, "PATH": "/usr/bin:/bin"},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


def check_copies(url: str, client: Path, broker: Broker, helper: Client, home: Path, prefix: str) -> None:
    topic = make_topic(helper, f"{prefix}-in", 2, retention_ms="-1")
    copy = make_topic(helper, f"{prefix}-out", 2)
    fill(broker.bootstrap, topic, partitions=2, per_partition=1_000)
    printed = run(client, home, PROGRAM, url, broker.bootstrap, topic, copy, str(home / "checkpoint"))
    values = [
        f"value {partition} {number}" for partition in range(2) for number in range(1_000) if number % 11
    ]
    assert printed.split() == ["True", "True", "2000", str(sum(map(len, values)))]
    assert committed_values(broker.bootstrap, copy) == sorted(values * 2)


def test_a_client_reads_and_writes_and_streams(
    connect: str, client: Path, broker: Broker, helper: Client, tmp_path: Path
) -> None:
    check_copies(connect, client, broker, helper, tmp_path, "connect")


def test_a_client_gets_the_reasons_of_errors_in_plain_words(
    connect: str, client: Path, broker: Broker, tmp_path: Path
) -> None:
    printed = run(client, tmp_path, FAILING, connect, "barnabas", broker.bootstrap)
    assert "subscribe" in printed
    assert "Traceback" not in printed
    missing = run(client, tmp_path, FAILING, connect, "barnabas-of-yore", broker.bootstrap)
    assert "[DATA_SOURCE_NOT_FOUND]" in missing


@pytest.mark.long
def test_a_client_of_a_server_on_a_cluster_reads_and_writes_and_streams(
    connect_on_cluster: str, client: Path, broker: Broker, helper: Client, tmp_path: Path
) -> None:
    check_copies(connect_on_cluster, client, broker, helper, tmp_path, "connect-cluster")
