"""Produce at a steady rate with librdkafka's idempotent producer until the input ends.

``python -m interop.python.confluent_load HOST:PORT TOPIC NAME RATE``. It prints a line for each record that is
acknowledged: number, partition, offset, and when it was sent and acknowledged, in milliseconds; or the number and the
error.
"""

import select
import sys
import time
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

KEYS_COUNT = 32


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def report(number: int, sent_ms: int, error: KafkaError | None, message: Message) -> None:
    if error is not None:
        print(number, error, flush=True)
    else:
        print(number, message.partition(), message.offset(), sent_ms, now_ms(), flush=True)


def run(bootstrap: str, topic: str, name: str, rate: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    start_s, number = time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        on_delivery = partial(report, number, now_ms())
        producer.produce(topic, f"{name} {number}", f"key {number % KEYS_COUNT}", on_delivery=on_delivery)
        number += 1
        while (pause_s := start_s + number / int(rate) - time.monotonic()) > 0:
            producer.poll(pause_s)
    producer.flush()


if __name__ == "__main__":
    run(*sys.argv[1:])
