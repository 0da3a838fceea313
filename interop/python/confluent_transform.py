"""Read, transform and write in transactions until killed, with confluent-kafka.

``python -m interop.python.confluent_transform HOST:PORT INPUT OUTPUT GROUP``. After any error it starts again with the
same transactional id, which ends the open transaction. So it does when a call of librdkafka does not return.
"""

import faulthandler
import itertools
import os
import sys
import threading
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

PATIENCE_S = 10.0
PAUSE_S = 0.2
#: After which time it starts again as a new process. If new metadata does not contain the group coordinator that
#: librdkafka waits for, send_offsets_to_transaction never returns, whatever its timeout (librdkafka issues 5511, 5456).
HANG_S = 20.0


class Watchdog(threading.Thread):
    """Replaces the process when `reset` has not been called for `HANG_S`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._reset = threading.Event()

    def reset(self) -> None:
        self._reset.set()

    def run(self) -> None:
        while self._reset.wait(HANG_S):
            self._reset.clear()
        print("starts again: librdkafka hangs", file=sys.stderr, flush=True)
        faulthandler.dump_traceback()
        os.execv(sys.executable, [sys.executable, "-m", "interop.python.confluent_transform", *sys.argv[1:]])


def consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 3_000,
            "heartbeat.interval.ms": 500,
        }
    )


def producer(bootstrap: str, group: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": group,
            "transaction.timeout.ms": 10_000,
            # The known brokers stay known while none is running; librdkafka would forget them otherwise, but wait for
            # the group coordinator among them (so it does with Apache Kafka).
            "metadata.recovery.strategy": "none",
        }
    )


def transform(reading: Consumer, writing: Producer, output: str, messages: list[Message], name: str) -> None:
    """Run one transaction: an output for each input, and the inputs' offsets."""
    offsets: dict[tuple[str, int], int] = {}
    writing.begin_transaction()
    for message in messages:
        value, topic, partition = message.value(), message.topic(), message.partition()
        writing.produce(output, (value or b"") + f" {name}/{len(messages)}".encode(), partition=partition)
        offsets[str(topic), int(partition or 0)] = int(message.offset() or 0) + 1
    read = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    writing.send_offsets_to_transaction(read, reading.consumer_group_metadata(), PATIENCE_S)
    writing.commit_transaction(PATIENCE_S)


def run(watchdog: Watchdog, bootstrap: str, inputs: str, output: str, group: str) -> None:
    """Run from the start of this incarnation to its first error."""
    reading, writing = consumer(bootstrap, group), producer(bootstrap, group)
    incarnation: Any = uuid.uuid4().hex[:8]
    try:
        reading.subscribe([inputs])
        writing.init_transactions(PATIENCE_S)
        for number in itertools.count():
            watchdog.reset()
            messages = [each for each in reading.consume(50, 0.1) if each.error() is None]
            if messages:
                transform(reading, writing, output, messages, f"{incarnation}.{number}")
    finally:
        reading.close()


if __name__ == "__main__":
    running = Watchdog()
    running.start()
    while True:
        try:
            run(running, *sys.argv[1:])
        except KafkaException as error:
            print("starts again:", error, file=sys.stderr, flush=True)
            time.sleep(PAUSE_S)
