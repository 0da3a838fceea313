"""A standalone cluster whose workers have only the Barnabas and Python that spark-submit sends."""

import json
import os
import subprocess
import sys
from pathlib import Path

from interop.brokers import Broker
from interop.clients import Client
from interop.topics import make_topic

from support.spark import ROOT, SETTINGS
from support.spark_cluster import Cluster, send_along
from support.spark_topics import committed_values, fill

#: Collects where each executor imports the packages from.
WHERE = """
import json
from pyspark.sql import SparkSession

def imported(batches):
    import os
    import pyarrow as pa
    import barnabas.client
    import pyspark_barnabas
    for batch in batches:
        place = [os.getcwd(), barnabas.client.__file__, pyspark_barnabas.__file__]
        yield pa.RecordBatch.from_pydict({"place": [json.dumps(place)]})

session = SparkSession.builder.getOrCreate()
rows = session.range(0, 40, 1, 8).mapInArrow(imported, "place string").collect()
print(json.dumps(sorted({row.place for row in rows})))
session.stop()
"""

#: Copies a topic to another, with executors that connect to the broker themselves.
COPY = """
import sys
from pyspark.sql import SparkSession

bootstrap, topic, copy = sys.argv[1:]
session = SparkSession.builder.getOrCreate()
source = (
    session.read.format("barnabas")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribe", topic)
    .option("minPartitions", "8")
    .load()
)
print(source.count(), source.selectExpr("sum(length(value))").first()[0])
out = source.select("key", "value").write.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
out.option("topic", copy).option("delivery", "exactly-once").mode("append").save()
session.stop()
"""


def submit(master: str, application: Path, *arguments: str) -> str:
    """Run an application on an interpreter that is sent along; return its output."""
    home = application.parent
    settings = {**SETTINGS, "spark.executor.memory": "512m", "spark.cores.max": "2"}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    options += ["--archives", f"{send_along(home)}#environment"]
    command = [sys.executable, "-m", "barnabas", "spark-submit"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": "environment/bin/python"}
    ended = subprocess.run(
        [*command, "--master", master, *options, str(application), *arguments],
        env={**environment, "PYSPARK_DRIVER_PYTHON": sys.executable},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr[-8000:]
    return ended.stdout


def test_workers_import_the_packages_that_were_sent(cluster: Cluster, tmp_path: Path) -> None:
    application = tmp_path / "where.py"
    application.write_text(WHERE)
    partitions = [json.loads(tp) for tp in json.loads(submit(cluster.url, application))]
    assert len({directory for directory, *_ in partitions}) == 2
    for _, *files in partitions:
        assert all(".zip/" in file for file in files)
    assert {directory for directory, *_ in partitions} <= runs(tmp_path)


def runs(home: Path) -> set[str]:
    """Return where the environment has run."""
    return set((home / "runs").read_text().splitlines())


def test_executors_read_and_write_topics_exactly_once(
    cluster: Cluster, broker: Broker, helper: Client, tmp_path: Path
) -> None:
    topic, copy = make_topic(helper, "cluster-in", 4, retention_ms="-1"), make_topic(helper, "cluster-out", 4)
    fill(broker.bootstrap, topic, partitions=4, per_partition=1_000)
    application = tmp_path / "copy_topic.py"
    application.write_text(COPY)
    rows_count, length = map(int, submit(cluster.url, application, broker.bootstrap, topic, copy).split())
    values = [
        f"value {partition} {number}" for partition in range(4) for number in range(1_000) if number % 11
    ]
    assert (rows_count, length) == (4_000, sum(map(len, values)))
    assert committed_values(broker.bootstrap, copy) == sorted(values)
    assert len(runs(tmp_path) - {str(tmp_path)}) == 2
