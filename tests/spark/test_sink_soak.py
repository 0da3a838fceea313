"""Exactly once under fire, in local mode: `tests/interop/spark/test_sink_soak.py` has clusters and Apache Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.process import BrokerProcess
from support.spark_fire import PROPERTIES, ROUNDS, Fire
from support.spark_stream import LOCAL

VICTIMS = ("driver", "worker", "broker")


@pytest.fixture
def fire(tmp_path: Path) -> Iterator[Fire]:
    settings = [word for key, value in PROPERTIES.items() for word in ("--set", f"{key}={value}")]
    burning = Fire(tmp_path, LOCAL, lambda port: BrokerProcess(tmp_path / "data", *settings, port=port or 0))
    yield burning
    burning.stop()


@pytest.mark.long
def test_each_input_is_written_exactly_once_whoever_is_killed(fire: Fire) -> None:
    fire.burn(VICTIMS, ROUNDS)
