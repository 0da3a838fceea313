"""Job and broker are killed at random while the job compacts logs that receive writes."""

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.compact.job import BUSY, CLEAN, ELSEWHERE, WAITING, Compacted
from support.admin import create, new_topic
from support.compacting import compact_without_spark
from support.load import PARTITIONS_COUNT, Load, await_acknowledgements
from support.process import BrokerProcess
from support.spark import worker_environment
from support.waiting import until
from support.wire import Wire

CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "60000",
    "min.cleanable.dirty.ratio": "0.3",
    "file.delete.delay.ms": "0",
}
LOADS_COUNT, ROUNDS_COUNT, ROUND_S = 2, 5, 0.6


@contextmanager
def job(broker: BrokerProcess, data: Path, states: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run the job repeatedly until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.compacting", broker.bootstrap, str(data)],
        env={**os.environ, **worker_environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        states += process.communicate()[0].split()


def read(bootstrap: str) -> dict[tuple[str, int], list[int]]:
    """Return (key, partition) -> numbers in log order."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    partitions = {TopicPartition("t", index): EARLIEST for index in range(PARTITIONS_COUNT)}
    with BlockingClient(bootstrap) as client, client.consumer(partitions, stop_at_end=True) as consumer:
        for record in consumer:
            found[(record.key or b"").decode(), record.partition].append(int(record.value or b""))
    return found


@pytest.mark.long
@pytest.mark.parametrize("own_cleaner", ["true", "false"])
def test_the_last_value_of_each_key_survives_any_kill(tmp_path: Path, own_cleaner: str) -> None:
    rng, data, states = random.Random(7), tmp_path / "data", list[str]()
    settings = ["--set", "log.cleaner.backoff.ms=5", "--set", f"log.cleaner.enable={own_cleaner}"]
    broker = BrokerProcess(data, *settings)
    with Wire(broker.port) as wire:
        create(wire, new_topic("t", PARTITIONS_COUNT, configs=CONFIGS))
    loads = [Load(f"producer {index}", broker.bootstrap, 60) for index in range(LOADS_COUNT)]
    try:
        for number in range(ROUNDS_COUNT):
            with job(broker, data, states) as process:
                assert process.stdout
                states += process.stdout.readline().split()  # it is running
                time.sleep(rng.uniform(0, ROUND_S))
                if number % 2:
                    broker.kill()
                    broker = BrokerProcess(data, *settings, port=broker.port)
        await_acknowledgements(loads, 1)
    finally:
        for load in loads:
            load.stop()
    assert [load.failures for load in loads] == [[]] * LOADS_COUNT
    with broker:
        found = read(broker.bootstrap)
    left_count = 0
    for load in loads:
        for partition, acknowledged in load.acknowledged.items():
            numbers = found[load.name, partition]
            left_count += len(numbers)
            assert numbers == sorted(set(numbers)), "in the order in which they were written, each once"
            assert set(numbers) <= set(acknowledged)
            assert numbers[-1] == acknowledged[-1]
    assert left_count < sum(load.acknowledged_count for load in loads) / 2, states
    assert states.count("imported") > (0 if own_cleaner == "true" else ROUNDS_COUNT), states
    assert own_cleaner == "true" or "refused" not in states, broker.stderr


def test_prepared_segments_are_imported_when_the_broker_restarts(tmp_path: Path) -> None:
    settings = {
        "log.cleaner.backoff.ms": "600000",
        "log.cleaner.enable": "false",
        "log.dirs": str(tmp_path / "logs"),
    }
    with EmbeddedBroker(settings) as broker:
        broker.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": "1000"})
        for number in range(60):
            broker.produce("t", b"%d" % number + b"x" * 100, key=b"k%d" % (number % 3))
        (tmp_path / "elsewhere").mkdir()
        [elsewhere] = compact_without_spark(broker.bootstrap, str(tmp_path / "elsewhere"), 0.0)
        assert (elsewhere.state, elsewhere.is_failed) == (ELSEWHERE, False)
        [done] = compact_without_spark(broker.bootstrap, str(tmp_path / "logs"), 0.0)
        assert (done.state, done.is_failed) == (WAITING, True)
        [busy] = compact_without_spark(broker.bootstrap, str(tmp_path / "logs"), 0.0)
        assert busy == Compacted("t", 0, BUSY, why="an import is waiting for the broker")
        before = broker.records("t")
        broker.restart(kill=True)
        until(lambda: broker.server.parts.compacted_segment_importer.imported_count == 1)
        after = broker.records("t")
        assert len(after) == done.records_after + len(before) - done.records_before
        assert {each.key: each.value for each in after} == {each.key: each.value for each in before}
        until(lambda: not (tmp_path / "logs" / "t-0" / "replacement" / "manifest.json").exists())
        [again] = compact_without_spark(broker.bootstrap, str(tmp_path / "logs"), 0.0)
        assert again.state == CLEAN
