"""Exactly-once delivery on a standalone cluster while its executors, the driver and the broker are killed.

SPARK_BROKER is kafka or barnabas, SPARK_MASTER cluster or local, SPARK_ROUNDS the kills of each process, and SPARK_SEED
their moments: `make soak-spark MASTER=cluster BROKER=kafka ROUNDS=20 SEED=1`.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from interop.targets import START

from support.spark_cluster import Cluster
from support.spark_kills import PROPERTIES, ROUNDS, KillTest
from support.spark_stream import LOCAL

BROKER = os.environ.get("SPARK_BROKER", "kafka")
MASTER = os.environ.get("SPARK_MASTER", "cluster")
VICTIMS = {"cluster": ("executor", "broker", "driver"), "local": ("driver", "worker", "broker")}


@pytest.fixture
def kill_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KillTest]:
    start = partial(START[BROKER], tmp_path, PROPERTIES)
    if MASTER == "local":
        kill_test = KillTest(tmp_path, LOCAL, start)
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        kill_test = KillTest(tmp_path, cluster.url, start, cluster.kill_executor)
    yield kill_test
    kill_test.stop()


@pytest.mark.long
def test_each_input_is_written_exactly_once_when_processes_are_killed(kill_test: KillTest) -> None:
    kill_test.run(VICTIMS[MASTER], ROUNDS)
