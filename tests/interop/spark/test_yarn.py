"""YARN with two node managers, whose containers have only what spark-submit sends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker
from interop.clients import Client
from interop.topics import make_topic

from interop import yarn_cluster
from pyspark_barnabas.runtime.submit import spark_home
from support.spark import ROOT, SETTINGS
from support.spark_cluster import send_along
from support.spark_topics import committed_values, fill

#: Copies a topic with a stream, exactly once; writes where each process imported Barnabas from.
COPY = """
import json
import sys
from pathlib import Path
from pyspark.sql import SparkSession

bootstrap, topic, copy, home = sys.argv[1:]
session = SparkSession.builder.getOrCreate()

def options(way, topic_option, name):
    return way.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option(topic_option, name)

def imported(batches):
    import os
    import pyarrow as pa
    import pyspark_barnabas
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"place": [json.dumps([os.getcwd(), pyspark_barnabas.__file__])]})

places = session.range(0, 40, 1, 8).mapInArrow(imported, "place string").distinct().collect()
counted = options(session.read, "subscribe", topic).load().count()
stream = options(session.readStream, "subscribe", topic).option("startingOffsets", "earliest").load()
query = options(stream.select("key", "value").writeStream, "topic", copy)
query = query.option("checkpointLocation", f"{home}/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
found = {"counted": counted, "places": [json.loads(place) for place, in places]}
Path(home, "found.json").write_text(json.dumps(found))
session.stop()
"""


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with yarn_cluster.running(tmp_path_factory.mktemp("yarn")) as conf:
        yield conf


def submit(conf: Path, home: Path, mode: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the application in containers; only Spark's jars are on every node."""
    application = home / "copy_topic.py"
    application.write_text(COPY)
    python = "environment/bin/python"
    settings = {
        **SETTINGS,
        "spark.yarn.jars": f"local:{spark_home()}/jars/*",
        "spark.yarn.stagingDir": f"file://{home}/staging",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
        "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME": "localhost",  # the address that the settings bind
        "spark.executor.memory": "512m",
        "spark.executor.instances": "2",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    options += ["--deploy-mode", mode, "--archives", f"{send_along(home)}#environment"]
    command = [sys.executable, "-m", "barnabas", "spark-submit"]
    environment = {**os.environ, "HADOOP_CONF_DIR": str(conf), "PYTHONPATH": str(ROOT / "src")}
    if mode == "client":
        environment["PYSPARK_PYTHON"] = python
    return subprocess.run(
        [*command, "--master", "yarn", *options, str(application), *arguments],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def container_logs(home: Path) -> str:
    """Return the ends of the logs of all containers."""
    return "\n".join(log.read_text(errors="replace")[-2000:] for log in home.rglob("container_*/stderr"))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_containers_copy_a_topic_with_what_was_sent(
    yarn: Path, broker: Broker, helper: Client, tmp_path: Path, mode: str
) -> None:
    topic = make_topic(helper, f"yarn-in-{mode}", 2, retention_ms="-1")
    copy = make_topic(helper, f"yarn-out-{mode}", 2)
    fill(broker.bootstrap, topic, partitions=2, per_partition=500)
    ended = submit(yarn, tmp_path, mode, broker.bootstrap, topic, copy, str(tmp_path))
    assert ended.returncode == 0, ended.stderr[-3000:] + container_logs(yarn.parent)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["counted"] == 1_000
    assert all("container_" in directory for directory, _ in found["places"])
    assert all(".zip/" in file for _, file in found["places"])
    values = [f"value {partition} {number}" for partition in range(2) for number in range(500) if number % 11]
    assert committed_values(broker.bootstrap, copy) == sorted(values)
