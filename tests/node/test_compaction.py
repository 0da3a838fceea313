"""Compaction in a broker that receives writes, is killed, and restarts."""

import asyncio
import random
import time
from collections import defaultdict
from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from support.admin import create, new_topic
from support.load import PARTITIONS_COUNT, Load, await_acknowledgements
from support.process import BrokerProcess
from support.waiting import until
from support.wire import Wire

CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "60000",  # more than a producer may have in flight
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}
EAGER = ["--set", "log.cleaner.backoff.ms=5", "--set", "log.cleaner.threads=2"]
PRODUCERS_COUNT, ROUNDS_COUNT, LOAD_S = 3, 6, 0.4


def read(bootstrap: str) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return (key, partition) -> offsets and numbers in log order."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    partitions = {TopicPartition("t", index): EARLIEST for index in range(PARTITIONS_COUNT)}
    with BlockingClient(bootstrap) as client, client.consumer(partitions, stop_at_end=True) as consumer:
        for record in consumer:
            key = (record.key or b"").decode()
            found[key, record.partition].append((record.offset, int(record.value or b"")))
    return found


def cleaned_partitions_count(directory: Path) -> int:
    """Return the number of partitions whose pass is complete; segments are replaced before that, one by one."""
    checkpoint = directory / "cleaner-offset-checkpoint"
    return int(checkpoint.read_text().splitlines()[1]) if checkpoint.exists() else 0


def test_the_last_value_of_each_key_survives_kills_during_compaction(tmp_path: Path) -> None:
    rng = random.Random(5)
    broker = BrokerProcess(tmp_path / "data", *EAGER)
    with Wire(broker.port) as wire:
        create(wire, new_topic("t", PARTITIONS_COUNT, configs=CONFIGS))
    loads = [Load(f"producer {index}", broker.bootstrap, 60) for index in range(PRODUCERS_COUNT)]
    try:
        for _ in range(ROUNDS_COUNT):
            await_acknowledgements(loads, 1)
            time.sleep(rng.uniform(0, LOAD_S))
            broker.kill()
            broker = BrokerProcess(tmp_path / "data", *EAGER, port=broker.port)
        await_acknowledgements(loads, 1)
    finally:
        for load in loads:
            load.stop()
    assert [load.failures for load in loads] == [[]] * PRODUCERS_COUNT
    written_count = sum(load.acknowledged_count for load in loads)
    with broker:
        until(lambda: sum(map(len, read(broker.bootstrap).values())) < written_count / 2)
        until(lambda: cleaned_partitions_count(tmp_path / "data") > 0)
        found = read(broker.bootstrap)
    for load in loads:
        for partition, acknowledged in load.acknowledged.items():
            records = found[load.name, partition]
            assert records == sorted(set(records)), "in the order in which they were written, each once"
            assert {number for _, number in records} <= set(acknowledged)
            assert records[-1][1] == acknowledged[-1]
    assert "cannot compact a log" not in broker.stderr


def test_a_topic_is_compacted_after_its_policy_changes_and_consumers_read_the_rest() -> None:
    with EmbeddedBroker({"log.cleaner.backoff.ms": "5"}) as kafka:
        kafka.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": "1000"})
        for number in range(60):
            kafka.produce("t", b"%d" % number + b"x" * 100, key=b"k%d" % (number % 3))
        until(lambda: len(kafka.records("t")) < 20)
        last = {record.key: int((record.value or b"").partition(b"x")[0]) for record in kafka.records("t")}
        assert last == {b"k0": 57, b"k1": 58, b"k2": 59}
        assert kafka.server.parts.cleaner.statistics()["uncleanable"] == {}


def test_nothing_is_compacted_when_the_cleaner_is_disabled() -> None:
    with EmbeddedBroker({"log.cleaner.backoff.ms": "5", "log.cleaner.enable": "false"}) as kafka:
        kafka.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": "1000"})
        for number in range(60):
            kafka.produce("t", b"%d" % number + b"x" * 100, key=b"k")
        assert asyncio.run(kafka.server.parts.cleaner.filthiest()) is not None
        assert len(kafka.records("t")) == 60


def test_replaced_segments_are_deleted_from_disk(tmp_path: Path) -> None:
    with EmbeddedBroker({"log.cleaner.backoff.ms": "5", "log.dirs": str(tmp_path)}) as kafka:
        kafka.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": "1000"})
        for number in range(60):
            kafka.produce("t", b"%d" % number + b"x" * 100, key=b"k")
        cleaner = kafka.server.parts.cleaner
        until(lambda: asyncio.run(cleaner.filthiest()) is None and cleaner.statistics()["running"] == [])
        until(lambda: not list((tmp_path / "t-0").glob("*.deleted")))
        assert not list((tmp_path / "t-0").glob("*.cleaned"))
        assert sum(path.stat().st_size for path in (tmp_path / "t-0").glob("*.log")) < 3_000
