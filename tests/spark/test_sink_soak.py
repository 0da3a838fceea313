"""Exactly-once delivery while processes are killed, in local mode.

`tests/interop/spark/test_sink_soak.py` has clusters and Apache Kafka.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.process import BrokerProcess
from support.spark_kills import PROPERTIES, ROUNDS, KillTest
from support.spark_stream import LOCAL

VICTIMS = ("driver", "worker", "broker")


@pytest.fixture
def kill_test(tmp_path: Path) -> Iterator[KillTest]:
    settings = [word for key, value in PROPERTIES.items() for word in ("--set", f"{key}={value}")]
    kill_test = KillTest(
        tmp_path, LOCAL, lambda port: BrokerProcess(tmp_path / "data", *settings, port=port or 0)
    )
    yield kill_test
    kill_test.stop()


@pytest.mark.long
def test_each_input_is_written_exactly_once_when_processes_are_killed(kill_test: KillTest) -> None:
    kill_test.run(VICTIMS, ROUNDS)
