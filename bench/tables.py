"""Tables of a topic by `barnabas tables` and by Spark: ``PYTHONPATH=tests python -m bench.tables``.

Throughput is that of a backlog, in MB of keys and values for each second of CPU time of all processes but the broker.
Lag is the time from a record's timestamp to the commit that has it, while records are written at a steady rate.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from barnabas.base.clock import SystemClock
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.codecs import BinaryFormat, CodecSpec
from barnabas.codecs.framing import Frame
from barnabas.reading.connection import ConnectionOptions
from barnabas.tables.building import TableStores, build_topic_table
from barnabas.tables.settings import Decoding, TableFormat, TableSettings
from bench.process import family_cpu_s
from pyspark_barnabas.decoding.records import decode, good_rows
from pyspark_barnabas.runtime.session import spark_session
from pyspark_barnabas.tables import SparkRangesWriter
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.delta import write_delta
from support.process import BrokerProcess
from support.registries import running_registry
from support.table_service import table_service
from support.tables import advance, topic_table

PARTITIONS_COUNT = 4
RATE = 1_000  #: records per second while the lag is measured
LAG_MS = 1_000
_FIELDS = [
    {"name": "order", "type": "long"},
    {"name": "item", "type": "string"},
    {"name": "price", "type": "double"},
    {"name": "quantity", "type": "int"},
    {"name": "note", "type": ["null", "string"]},
    *[{"name": f"attribute{number}", "type": "string"} for number in range(5)],
]
SCHEMA = json.dumps({"type": "record", "name": "shop.Order", "fields": _FIELDS})


def order(rng: random.Random, number: int) -> dict[str, object]:
    attributes = {f"attribute{index}": f"value {rng.randrange(100)}" for index in range(5)}
    note = rng.randbytes(20).hex() if number % 2 else None
    item, price, quantity = f"item {rng.randrange(1_000)}", rng.randrange(100_000) / 100, rng.randrange(9)
    return {"order": number, "item": item, "price": price, "quantity": quantity, "note": note, **attributes}


def fill(bootstrap: str, topic: str, count: int, serialize: Callable[[dict[str, object]], bytes]) -> int:
    """Write records, and return the bytes of their keys and values."""
    rng = random.Random(1)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 20})
    written = 0
    for number in range(count):
        key, value = b"customer-%d" % rng.randrange(10_000), serialize(order(rng, number))
        written += len(key) + len(value)
        producer.produce(topic, value, key, number % PARTITIONS_COUNT)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return written


class Ground:
    """A broker, a registry, a session and a directory."""

    def __init__(self, bootstrap: str, registry_url: str, spark: SparkSession, directory: Path) -> None:
        self.bootstrap = bootstrap
        self.registry_url = registry_url
        self.spark = spark
        self._directory = directory
        self._tables_count = 0

    def settings(self, topic: str, kind: TableFormat = TableFormat.DELTA) -> TableSettings:
        """Return the settings of another table of a topic."""
        self._tables_count += 1
        decoding = Decoding.REGISTRY if topic == "avro" else Decoding.BYTES
        location = self._directory / f"{self._tables_count}" / topic
        return TableSettings(topic, kind, location, value_decoding=decoding)

    def records(self, topic: str) -> DataFrame:
        reader = self.spark.read.format("barnabas").option("kafka.bootstrap.servers", self.bootstrap)
        return reader.option("subscribe", topic).option("includeHeaders", "true").load()


def by_service(ground: Ground, topic: str) -> None:
    advance(topic_table(ground.settings(topic), registry_url=ground.registry_url), ground.bootstrap)


def by_service_into_iceberg(ground: Ground, topic: str) -> None:
    settings = ground.settings(topic, TableFormat.ICEBERG)
    advance(topic_table(settings, registry_url=ground.registry_url), ground.bootstrap)


def by_service_on_spark(ground: Ground, topic: str) -> None:
    connection, stores = ConnectionOptions(ground.bootstrap), TableStores()
    writer = SparkRangesWriter(ground.spark, connection, stores, ground.registry_url)
    advance(build_topic_table(ground.settings(topic), stores, writer, SystemClock()), ground.bootstrap)


def by_spark(ground: Ground, topic: str) -> None:
    """Read with our source, decode with our library, and write with our writer for Delta."""
    records = ground.records(topic)
    rows = records.drop("topic", "timestampType")
    if topic == "avro":
        spec = CodecSpec(BinaryFormat.AVRO, SCHEMA.encode(), "", Frame(confluent=True))
        rows = good_rows(decode(records, spec), "key", "partition", "offset", "timestamp", "headers")
    location = ground.settings(topic).location
    assert isinstance(location, Path)
    write_delta(rows, location, (), BatchName("bench", 0))


WRITERS = (by_service, by_service_into_iceberg, by_service_on_spark, by_spark)


@contextmanager
def running_ground(records_count: int) -> Iterator[tuple[Ground, dict[str, int]]]:
    with (
        tempfile.TemporaryDirectory() as home,
        BrokerProcess(Path(home, "broker")) as broker,
        running_registry(broker.bootstrap) as registry,
    ):
        with BlockingClient(broker.bootstrap) as client:
            client.admin.create_topics(
                [NewTopic(name, PARTITIONS_COUNT) for name in ("json", "avro", "steady")]
            )
        serializer = AvroSerializer(SchemaRegistryClient({"url": registry.url}), SCHEMA)
        context = SerializationContext("avro", MessageField.VALUE)
        sizes = {
            "json": fill(broker.bootstrap, "json", records_count, lambda row: json.dumps(row).encode()),
            "avro": fill(broker.bootstrap, "avro", records_count, lambda row: serializer(row, context)),
        }
        spark = spark_session("bench", master="local[2]", settings={"spark.ui.showConsoleProgress": "false"})
        try:
            yield Ground(broker.bootstrap, registry.url, spark, Path(home, "tables")), sizes
        finally:
            spark.stop()


def measure_throughput(ground: Ground, sizes: dict[str, int], rounds: int) -> None:
    for topic, size_bytes in sizes.items():
        for number in range(rounds + 1):  # the first one warms up
            for write in WRITERS:
                cpu_s, clock_s = family_cpu_s(os.getpid()), time.monotonic()
                write(ground, topic)
                used_s, taken_s = family_cpu_s(os.getpid()) - cpu_s, time.monotonic() - clock_s
                if number:
                    TAKEN.setdefault((topic, write.__name__), []).append((used_s, taken_s))
        for write in WRITERS:
            taken = TAKEN[topic, write.__name__]
            per_core, per_clock = (
                size_bytes / 1e6 / median(each[index] for each in taken) for index in (0, 1)
            )
            print(f"{topic} {write.__name__}: {per_core:.0f} MB/s per core, {per_clock:.0f} MB/s", flush=True)


TAKEN: dict[tuple[str, str], list[tuple[float, float]]] = {}


def measure_lag(ground: Ground, seconds: int, directory: Path) -> None:
    options = ["--topic", "steady", "--location", str(directory)]
    options += ["--set", "barnabas.table.format=delta", "--set", f"barnabas.table.target.lag.ms={LAG_MS}"]
    with table_service(ground.bootstrap, directory / "log", *options):
        write_steadily(ground, seconds)
        time.sleep(2 * LAG_MS / 1000)
    show_lag("service", directory / "steady", "kafka_timestamp")
    reader = ground.spark.readStream.format("barnabas").option("kafka.bootstrap.servers", ground.bootstrap)
    records = reader.option("subscribe", "steady").load()
    path = directory / "by-spark"

    def write(rows: DataFrame, number: int) -> None:
        write_delta(rows, path, (), BatchName("bench", number))

    writer = records.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(directory / "checkpoint")
    )
    query = writer.trigger(processingTime=f"{LAG_MS // 2} milliseconds").start()
    write_steadily(ground, seconds)
    query.processAllAvailable()
    query.stop()
    show_lag("Spark", path, "timestamp")


def write_steadily(ground: Ground, seconds: int) -> None:
    producer = Producer({"bootstrap.servers": ground.bootstrap, "linger.ms": 5})
    rng, started_s = random.Random(2), time.monotonic()
    for number in range(seconds * RATE):
        time.sleep(max(0, started_s + number / RATE - time.monotonic()))
        value = json.dumps(order(rng, number)).encode()
        producer.produce("steady", value, b"k", number % PARTITIONS_COUNT)
        producer.poll(0)
    assert producer.flush(60) == 0


def show_lag(name: str, path: Path, column: str) -> None:
    """Print the age of the oldest record of each commit; the first commits, while everything starts, are left out."""
    table = DeltaTable(path)
    lags_ms = []
    for version in range(table.version() + 1):
        lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
        actions = [json.loads(line) for line in lines]
        committed_ms = next(each["commitInfo"]["timestamp"] for each in actions if "commitInfo" in each)
        added = [each["add"]["path"] for each in actions if each.get("add", {}).get("dataChange")]
        times = [pq.read_table(path / each)[column].to_pylist() for each in added]
        if times:
            lags_ms.append(committed_ms - min(min(each) for each in times).timestamp() * 1000)
    steady = sorted(lags_ms[3:])
    print(f"lag, {name}: median {median(steady):.0f} ms, maximum {steady[-1]:.0f} ms, {len(steady)} commits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=30)
    arguments = parser.parse_args()
    with running_ground(arguments.records) as (ground, sizes):
        measure_throughput(ground, sizes, arguments.rounds)
        with tempfile.TemporaryDirectory() as directory:
            measure_lag(ground, arguments.seconds, Path(directory))


if __name__ == "__main__":
    main()
