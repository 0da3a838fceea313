"""Producers that keep writing through every failure of a broker, and a check of the stored records."""

import threading
import time
from collections import defaultdict

from confluent_kafka import KafkaError, Message, Producer

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient

#: Configs of the topic "t", which receives all records.
PARTITIONS_COUNT = 2
WAIT_S = 30


class Load:
    """One idempotent producer that writes numbers until it is stopped, across broker failures."""

    def __init__(self, name: str, bootstrap: str, value_bytes: int = 0) -> None:
        self.name = name
        self._value_bytes = value_bytes  #: minimum size; numbers are padded with leading zeros
        self.acknowledged: dict[int, list[int]] = defaultdict(
            list
        )  #: partition -> acknowledged numbers, in order
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
        """Stop writing; return when every record is acknowledged or has failed."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            for _ in range(10):
                partition = number % PARTITIONS_COUNT
                value = str(number).zfill(self._value_bytes)
                try:
                    self._producer.produce(
                        "t", value, self.name, partition=partition, on_delivery=self._delivered
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
    """Wait until each load has `count` more acknowledgements."""
    required = [load.acknowledged_count + count for load in loads]
    deadline_s = time.monotonic() + WAIT_S
    while any(load.acknowledged_count < count for load, count in zip(loads, required, strict=True)):
        assert time.monotonic() < deadline_s, [load.failures for load in loads]
        assert not any(load.failures for load in loads), [load.failures for load in loads]
        time.sleep(0.001)


def stored(bootstrap: str) -> dict[tuple[str, int], list[int]]:
    """Return (producer, partition) -> the numbers in log order."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    partitions = {TopicPartition("t", index): EARLIEST for index in range(PARTITIONS_COUNT)}
    offsets: dict[int, list[int]] = defaultdict(list)
    with BlockingClient(bootstrap) as client, client.consumer(partitions, stop_at_end=True) as consumer:
        for record in consumer:
            found[(record.key or b"").decode(), record.partition].append(int(record.value or b""))
            offsets[record.partition].append(record.offset)
    for partition_offsets in offsets.values():
        assert partition_offsets == list(range(len(partition_offsets)))
    return found


def check(loads: list[Load], found: dict[tuple[str, int], list[int]]) -> None:
    """Check that every acknowledged record is stored, once and in order."""
    for load in loads:
        for partition in range(PARTITIONS_COUNT):
            numbers = found[load.name, partition]
            assert numbers == sorted(set(numbers)), "twice or out of order"
            assert load.acknowledged[partition] == numbers, "what is acknowledged is what is there"
