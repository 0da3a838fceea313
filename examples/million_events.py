"""Produce a million generated events, consume them, and compare them byte for byte.

    python examples/million_events.py [--bootstrap HOST:PORT] [--count N] [--partitions N] [--codec lz4]

Without --bootstrap, it starts a broker and removes it afterwards. The exit code is 0 if all events are equal and in the
order of their partition; otherwise it is 1, and the first difference is printed.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PAGES = ("/", "/basket", "/search?q=kafka", "/castle", "/trial", "/metamorphosis/überblick")


def events(count: int, seed: int = 1883) -> Iterator[tuple[bytes, bytes]]:
    """Yield clicks of visitors as (key, value); equal seeds give equal events."""
    rng = random.Random(seed)
    moment_ms = 1_700_000_000_000
    for number in range(count):
        moment_ms += rng.randrange(200)
        visitor = f"visitor-{rng.randrange(50_000)}"
        click = {
            "n": number,
            "at_ms": moment_ms,
            "page": rng.choice(PAGES),
            "took_ms": rng.randrange(3_000),
        }
        yield visitor.encode(), json.dumps(click, ensure_ascii=False).encode()


def partition_of(key: bytes, partitions: int) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=4).digest(), "big") % partitions


def progress(what: str, done: int, count: int, started: float) -> None:
    if done % 100_000 == 0 or done == count:
        rate = done / max(time.perf_counter() - started, 1e-9)
        print(f"{what}: {done:,} of {count:,} ({rate:,.0f}/s)", file=sys.stderr)


def produce(bootstrap: str, topic: str, count: int, partitions: int, codec: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    errors: list[object] = []
    started = time.perf_counter()
    for done, (key, value) in enumerate(events(count), 1):
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    partition_of(key, partitions),
                    on_delivery=lambda error, _: errors.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if done % 10_000 == 0:
            producer.poll(0)
        progress("produced", done, count, started)
    left = producer.flush(120)
    if left or errors:
        sys.exit(f"{left} events were not acknowledged, {len(errors)} were rejected: {errors[:3]}")


def compare(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    by_partition: list[list[tuple[bytes, bytes]]] = [[] for _ in range(partitions)]
    for key, value in events(count):
        by_partition[partition_of(key, partitions)].append((key, value))
    expected = [iter(sent) for sent in by_partition]
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "million-events", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    started = time.perf_counter()
    done = 0
    while done < count:
        messages = consumer.consume(10_000, timeout=30)
        if not messages:
            sys.exit(f"no more events after {done} of {count}")
        for message in messages:
            if message.error():
                sys.exit(f"the broker returned {message.error()}")
            sent = next(expected[message.partition()], None)
            if (message.key(), message.value()) != sent:
                where = f"{topic}-{message.partition()} offset {message.offset()}"
                sys.exit(f"{where}: received {message.key()!r} {message.value()!r}, sent {sent!r}")
            done += 1
            progress("read back", done, count, started)
    consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codec", default="lz4", choices=("none", "gzip", "snappy", "lz4", "zstd"))
    options = parser.parse_args()
    if options.bootstrap:
        broker = nullcontext()
    else:
        from barnabas.testing import EmbeddedBroker

        broker = EmbeddedBroker()
    with broker as embedded:
        bootstrap = options.bootstrap or embedded.bootstrap
        topic = f"clicks-{random.SystemRandom().randrange(10**9)}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, options.partitions)])[topic].result()
        produce(bootstrap, topic, options.count, options.partitions, options.codec)
        compare(bootstrap, topic, options.count, options.partitions)
    print(f"{options.count:,} events were produced to {topic} and consumed without a difference")


if __name__ == "__main__":
    main()
