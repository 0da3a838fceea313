"""Throughput of `read_topic` and of other readers: ``PYTHONPATH=tests python -m bench.arrow``.

They read in turns, the tasks of Spark's source without Spark. The broker is a process of its own; MB are those of keys
and values. The figures are medians of all rounds.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import duckdb
import polars as pl
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from barnabas.arrow import read_topic
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from pyspark_barnabas.source.batch_reader import BatchReader
from support.process import BrokerProcess

PARTITIONS_COUNT = 4
CODECS = ("none", "lz4")


def fill(bootstrap: str, topic: str, codec: str, count: int) -> int:
    """Write JSON records, and return the bytes of their keys and values."""
    rng = random.Random(1)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
    written = 0
    for number in range(count):
        key = b"customer-%d" % rng.randrange(10_000)
        order = {"order": number, "item": f"item {rng.randrange(1_000)}", "price": rng.randrange(100_000)}
        value = json.dumps({**order, "note": rng.randbytes(50).hex()}).encode()
        written += len(key) + len(value)
        producer.produce(topic, value, key, number % PARTITIONS_COUNT)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return written


def by_read_topic(bootstrap: str, topic: str) -> int:
    return sum(batch.num_rows for batch in read_topic(bootstrap, topic))


def by_read_topic_with_headers(bootstrap: str, topic: str) -> int:
    batches = read_topic(bootstrap, topic)
    return sum(batch.num_rows for batch in batches.select([*batches.columns, "headers"]))


def values_by_read_topic(bootstrap: str, topic: str) -> int:
    return sum(batch.num_rows for batch in read_topic(bootstrap, topic, columns=["value"]))


def by_polars(bootstrap: str, topic: str) -> int:
    return pl.DataFrame(read_topic(bootstrap, topic)).height


def by_duckdb(bootstrap: str, topic: str) -> int:
    records = read_topic(bootstrap, topic, columns=["key", "value"])
    [(count,)] = duckdb.sql("SELECT count(value) FROM records").fetchall()
    assert len(records.ranges) == PARTITIONS_COUNT
    return int(count)


def by_spark_tasks(bootstrap: str, topic: str) -> int:
    reader = BatchReader(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}, read_topic(bootstrap, topic).columns
    )
    return sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task))


def by_confluent_kafka(bootstrap: str, topic: str) -> int:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,  # else it waits half a second at the end
    }
    count, open_count = 0, PARTITIONS_COUNT
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS_COUNT)])
        while open_count:
            for message in consumer.consume(1_000, 0.05):
                if message.error():
                    open_count -= 1
                else:
                    count += message.value() is not None and message.key() is not None
    return count


READERS: tuple[Callable[[str, str], int], ...] = (
    by_read_topic,
    by_read_topic_with_headers,
    values_by_read_topic,
    by_polars,
    by_duckdb,
    by_spark_tasks,
    by_confluent_kafka,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory)) as broker:
        bootstrap = broker.bootstrap
        with BlockingClient(bootstrap) as client:
            client.admin.create_topics([NewTopic(codec, PARTITIONS_COUNT) for codec in CODECS])
        for codec in CODECS:
            size = fill(bootstrap, codec, codec, arguments.records)
            for reader in READERS:
                reader(bootstrap, codec)  # compiles, and fills the page cache
            seconds: dict[str, list[float]] = {reader.__name__: [] for reader in READERS}
            for _ in range(arguments.rounds):
                for reader in READERS:
                    begin_s = time.perf_counter()
                    assert reader(bootstrap, codec) == arguments.records
                    seconds[reader.__name__].append(time.perf_counter() - begin_s)
            print(f"{codec}: {size / 1e6:.0f} MB in {arguments.records} records")
            for name, times in seconds.items():
                print(f"  {name.replace('_', ' '):28} {size / 1e6 / median(times):7.0f} MB/s")


if __name__ == "__main__":
    main()
