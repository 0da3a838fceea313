"""A broker killed under load, repeatedly: no acknowledged record is lost, duplicated or reordered."""

import random
import time
from pathlib import Path

import pytest

from support.admin import create, new_topic
from support.load import PARTITIONS_COUNT, Load, await_acknowledgements, check, stored
from support.process import BrokerProcess
from support.wire import Wire

PRODUCERS_COUNT = 3
LOAD_S = 0.3  #: the longest duration of a round after its first acknowledgement


@pytest.mark.parametrize(
    ("stop", "rounds_count", "settings"),
    [
        ("kill", 5, []),
        ("kill", 5, ["--set", "log.flush.interval.messages=1"]),
        ("terminate", 3, []),
    ],
    ids=["killed", "killed-with-flush", "stopped"],
)
def test_acknowledged_records_are_neither_lost_nor_duplicated_nor_reordered(
    tmp_path: Path, stop: str, rounds_count: int, settings: list[str]
) -> None:
    rng = random.Random(11)
    broker = BrokerProcess(tmp_path / "data", *settings)
    with Wire(broker.port) as wire:
        create(wire, new_topic("t", PARTITIONS_COUNT))
    loads = [Load(f"producer {index}", broker.bootstrap) for index in range(PRODUCERS_COUNT)]
    try:
        for _ in range(rounds_count):
            await_acknowledgements(loads, 1)
            time.sleep(rng.uniform(0, LOAD_S))
            getattr(broker, stop)()
            broker = BrokerProcess(tmp_path / "data", *settings, port=broker.port)
        await_acknowledgements(loads, 1)
    finally:
        for load in loads:
            load.stop()
        if broker.process.poll() is None and any(load.failures for load in loads):
            broker.kill()
    assert [load.failures for load in loads] == [[]] * PRODUCERS_COUNT
    with broker:
        found = stored(broker.bootstrap)
    check(loads, found)
