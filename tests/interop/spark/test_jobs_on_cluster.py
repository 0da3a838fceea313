"""Jobs on a standalone cluster, whose executors write to topics and to an object store."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import EmbeddedBroker
from support.object_server import SECRET, object_server
from support.rekeyed import check_copy, commit, consume, contents, grow, unread, write
from support.source_rows import consumed_rows, fill
from support.spark import SETTINGS, worker_environment
from support.spark_cluster import Cluster

GROWN, COPY, GROUP = "grown", "grown-again", "of-grown"
PROGRAM = """
import json, sys
from pathlib import Path
from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey
from pyspark_barnabas.jobs.common.session import job_session

master, bootstrap, state = sys.argv[1:]
options = {"kafka.bootstrap.servers": bootstrap}
with job_session("rekey", master) as spark:
    request = RekeyRequest("grown", "grown-again", was=(2,), partitions=4, groups=("of-grown",), step_records=200)
    copied = rekey(spark, options, request, Path(state), cut_over=True)
print(json.dumps({"steps": len(copied.steps), "cut over": copied.is_cut_over}))
"""


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    settings = {
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "log.retention.ms": "-1",
    }
    with EmbeddedBroker(settings) as running:
        yield running


def fill_grown(broker: EmbeddedBroker) -> None:
    broker.create_topic(GROWN, 2)
    write(broker, GROWN, 2, range(60))
    grow(broker, GROWN, 3)
    write(broker, GROWN, 3, range(60, 120))
    commit(broker, GROUP, GROWN, {0: 40, 1: 60, 2: 10})


def on_cluster(cluster: Cluster, home: Path, *arguments: str) -> dict[str, Any]:
    """Run the program with its driver here and its tasks on the cluster."""
    found: dict[str, Any] = json.loads(
        run_on_cluster(["-c", PROGRAM, cluster.url, *arguments], home).splitlines()[-1]
    )
    return found


def run_on_cluster(arguments: Sequence[str], home: Path) -> str:
    """Run Python with settings for executors; return its output."""
    defaults = {
        **SETTINGS,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": worker_environment()["PYTHONPATH"],
    }
    (home / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in defaults.items()))
    ended = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **worker_environment(), "SPARK_CONF_DIR": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-8000:]
    return ended.stdout


@pytest.mark.long
def test_executors_rekey_a_topic(cluster: Cluster, embedded: EmbeddedBroker, tmp_path: Path) -> None:
    fill_grown(embedded)
    launched = [worker.log.read_text().count("Asked to launch executor") for worker in cluster.workers]
    done = on_cluster(cluster, tmp_path, embedded.bootstrap, str(tmp_path / "state"))
    for worker, count in zip(cluster.workers, launched, strict=True):
        assert worker.log.read_text().count("Asked to launch executor") == count + 1
    assert done["steps"] > 1
    assert done["cut over"]
    check_copy(embedded, GROWN, COPY, 4)
    left = contents(unread(embedded, GROWN, {0: 40, 1: 60, 2: 10}))
    got = contents(consume(embedded, GROUP, COPY))
    for one in left:
        got.remove(one)  # at least once: no copy could avoid repetitions at this group's offsets


@pytest.mark.long
def test_executors_archive_into_an_object_store(
    cluster: Cluster, embedded: EmbeddedBroker, tmp_path: Path
) -> None:
    """The workers have no settings in their environment: they get them with their tasks."""
    topic = "archived-on-cluster"
    embedded.create_topic(topic, 4)
    fill(embedded.bootstrap, topic, 200, 4)
    launched = [worker.log.read_text().count("Asked to launch executor") for worker in cluster.workers]
    with object_server() as server:
        location = f"{server.create_bucket('archives')}/of/cluster"
        arguments = ["-b", embedded.bootstrap, "--master", cluster.url, *server.arguments]
        for command in (
            ["archive", location, *arguments, "-t", topic],
            ["scrub", "--archive", location, *arguments[2:]],
            ["restore", location, *arguments, "--as", f"{topic}-again", "--map", str(tmp_path / "map")],
        ):
            run_on_cluster(["-m", "barnabas", "jobs", *command], tmp_path)
    for worker, count in zip(cluster.workers, launched, strict=True):
        assert worker.log.read_text().count("Asked to launch executor") == count + 3
        assert SECRET not in worker.log.read_text()
    restored = consumed_rows(embedded.bootstrap, f"{topic}-again", committed=True)
    assert [row[3:] for row in restored] == [row[3:] for row in consumed_rows(embedded.bootstrap, topic)]
