"""Read, transform and write in transactions until killed, with confluent-kafka.

``python -m interop.python.confluent_transform HOST:PORT INPUT OUTPUT GROUP``. After any error it starts again with the
same transactional id, which ends the open transaction.
"""

import faulthandler
import itertools
import sys
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

PATIENCE_S = 10.0
PAUSE_S = 0.2
#: After which time the log shows where it hangs: not every call of librdkafka ends after its timeout.
HANG_S = 30.0


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
            # The known brokers stay known while none is running. librdkafka would forget them otherwise, but wait for
            # the group coordinator among them, and send_offsets_to_transaction would never come back, whatever its
            # timeout (librdkafka issues 5511 and 5456; so it does with Apache Kafka).
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


def run(bootstrap: str, inputs: str, output: str, group: str) -> None:
    """Run from the start of this incarnation to its first error."""
    reading, writing = consumer(bootstrap, group), producer(bootstrap, group)
    incarnation: Any = uuid.uuid4().hex[:8]
    try:
        reading.subscribe([inputs])
        writing.init_transactions(PATIENCE_S)
        for number in itertools.count():
            faulthandler.dump_traceback_later(HANG_S)
            messages = [each for each in reading.consume(50, 0.1) if each.error() is None]
            if messages:
                transform(reading, writing, output, messages, f"{incarnation}.{number}")
    finally:
        reading.close()


if __name__ == "__main__":
    while True:
        try:
            run(*sys.argv[1:])
        except KafkaException as error:
            print("starts again:", error, file=sys.stderr, flush=True)
            time.sleep(PAUSE_S)
