"""Killed under load, again and again: nothing acknowledged is lost, nothing is there twice, order is kept."""

import random
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Client
from barnabas.client.offsets import EARLIEST
from support.admin import create, new_topic
from support.process import BrokerProcess
from support.wire import Wire

PRODUCERS_COUNT = 3
PARTITIONS_COUNT = 2
LOAD_S = 0.3  #: how long a round lasts at most from its first acknowledgement on
WAIT_S = 30


class Load:
    """One idempotent producer that writes numbers until it is told to stop, whatever becomes of the broker."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.acknowledged: dict[int, list[int]] = defaultdict(
            list
        )  #: partition -> numbers, as they were told
        self.failures: list[KafkaError] = []
        self._stopped = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "queue.buffering.max.messages": 500,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 5,
                "retry.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def stop(self) -> None:
        """Write no more; returns when all that was written is acknowledged or has failed."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            for _ in range(10):
                partition = number % PARTITIONS_COUNT
                try:
                    self._producer.produce(
                        "t", str(number), self.name, partition=partition, on_delivery=self._delivered
                    )
                except BufferError:
                    break
                number += 1
            self._producer.poll(0.002)
        assert self._producer.flush(WAIT_S) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            self.acknowledged[message.partition()].append(int(message.value()))


def await_acknowledgements(loads: list[Load], count: int) -> None:
    """Wait until each load has `count` more."""
    wanted = [load.acknowledged_count + count for load in loads]
    deadline_s = time.monotonic() + WAIT_S
    while any(load.acknowledged_count < count for load, count in zip(loads, wanted, strict=True)):
        assert time.monotonic() < deadline_s, [load.failures for load in loads]
        assert not any(load.failures for load in loads), [load.failures for load in loads]
        time.sleep(0.001)


def stored(bootstrap: str) -> dict[tuple[str, int], list[int]]:
    """(producer, partition) -> the numbers in the order of the log."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    places = {TopicPartition("t", index): EARLIEST for index in range(PARTITIONS_COUNT)}
    offsets: dict[int, list[int]] = defaultdict(list)
    with Client(bootstrap) as client, client.consumer(places, stop_at_end=True) as consumer:
        for record in consumer:
            found[(record.key or b"").decode(), record.partition].append(int(record.value or b""))
            offsets[record.partition].append(record.offset)
    for partition_offsets in offsets.values():
        assert partition_offsets == list(range(len(partition_offsets)))
    return found


@pytest.mark.parametrize(
    ("stop", "rounds_count", "settings"),
    [
        ("kill", 20, []),
        ("kill", 20, ["--set", "log.flush.interval.messages=1"]),
        ("terminate", 5, []),
    ],
    ids=["killed", "killed-with-flush", "stopped"],
)
def test_nothing_acknowledged_is_lost_nothing_is_twice_and_order_is_kept(
    tmp_path: Path, stop: str, rounds_count: int, settings: list[str]
) -> None:
    dice = random.Random(11)
    broker = BrokerProcess(tmp_path / "data", *settings)
    with Wire(broker.port) as wire:
        create(wire, new_topic("t", PARTITIONS_COUNT))
    loads = [Load(f"producer {index}", broker.bootstrap) for index in range(PRODUCERS_COUNT)]
    try:
        for _ in range(rounds_count):
            await_acknowledgements(loads, 1)
            time.sleep(dice.uniform(0, LOAD_S))
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
    for load in loads:
        for partition in range(PARTITIONS_COUNT):
            numbers = found[load.name, partition]
            assert numbers == sorted(set(numbers)), "twice or out of order"
            assert load.acknowledged[partition] == numbers, "what is acknowledged is what is there"
