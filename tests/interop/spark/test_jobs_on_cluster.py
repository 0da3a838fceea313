"""The jobs `compact` and `rekey` on a standalone cluster, whose executors write beside the broker's logs and to
topics.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import EmbeddedBroker
from support.confluent_transactions import transact
from support.rekeyed import check_copy, commit, consume, contents, grow, unread, write
from support.spark import SETTINGS, worker_environment
from support.spark_cluster import Cluster

COMPACTED, GROWN, COPY, GROUP = "compacted", "grown", "grown-again", "of-grown"
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "1.0",  # the broker's own cleaner has nothing to do
}
PROGRAM = """
import json, sys
from pathlib import Path
from pyspark_barnabas.jobs.compact.job import compact
from pyspark_barnabas.jobs.rekey.job import Wanted, rekey
from pyspark_barnabas.jobs.common.session import job_session

master, bootstrap, logs, state = sys.argv[1:]
options = {"kafka.bootstrap.servers": bootstrap}
with job_session("both", master) as spark:
    compacted = compact(spark, {**options, "subscribe": "compacted", "logDirs": logs})
    wanted = Wanted("grown", "grown-again", was=(2,), partitions=4, groups=("of-grown",), step_records=200)
    copied = rekey(spark, options, wanted, Path(state), cut_over=True)
states = [each.state for each in compacted]
print(json.dumps({"states": states, "steps": len(copied.steps), "cut over": copied.is_cut_over}))
"""


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    settings = {
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "log.cleaner.backoff.ms": "20",
        "log.retention.ms": "-1",
    }
    with EmbeddedBroker(settings) as running:
        yield running


def fill_compacted(broker: EmbeddedBroker) -> None:
    broker.create_topic(COMPACTED, 3, CONFIGS)
    for number in range(240):
        key = b"k%d" % (number % 7)
        broker.produce(COMPACTED, b"%d" % number + b"x" * 100, key=key, partition=number % 3)
    transact(broker, COMPACTED, "of compacted", "ca", key=b"k0")


def fill_grown(broker: EmbeddedBroker) -> None:
    broker.create_topic(GROWN, 2)
    write(broker, GROWN, 2, range(60))
    grow(broker, GROWN, 3)
    write(broker, GROWN, 3, range(60, 120))
    commit(broker, GROUP, GROWN, {0: 40, 1: 60, 2: 10})


def last_values(broker: EmbeddedBroker) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in broker.records(COMPACTED)}


def on_cluster(cluster: Cluster, home: Path, *arguments: str) -> dict[str, Any]:
    """Run the program with its driver here and its tasks on the cluster."""
    defaults = {
        **SETTINGS,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": worker_environment()["PYTHONPATH"],
    }
    (home / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in defaults.items()))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, cluster.url, *arguments],
        env={**os.environ, **worker_environment(), "SPARK_CONF_DIR": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-8000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.long
def test_executors_compact_logs_and_rekey_a_topic(
    cluster: Cluster, embedded: EmbeddedBroker, tmp_path: Path
) -> None:
    fill_compacted(embedded)
    fill_grown(embedded)
    expected, before = last_values(embedded), len(embedded.records(COMPACTED))
    launched = [worker.log.read_text().count("Asked to launch executor") for worker in cluster.workers]
    done = on_cluster(cluster, tmp_path, embedded.bootstrap, str(embedded.directory), str(tmp_path / "state"))
    for worker, count in zip(cluster.workers, launched, strict=True):
        assert worker.log.read_text().count("Asked to launch executor") == count + 1
    assert done["states"] == ["imported"] * 3
    assert last_values(embedded) == expected
    assert len(embedded.records(COMPACTED)) < before / 2
    assert done["steps"] > 1
    assert done["cut over"]
    check_copy(embedded, GROWN, COPY, 4)
    left = contents(unread(embedded, GROWN, {0: 40, 1: 60, 2: 10}))
    got = contents(consume(embedded, GROUP, COPY))
    for one in left:
        got.remove(one)  # at least once: no copy could avoid repetitions at this group's offsets
