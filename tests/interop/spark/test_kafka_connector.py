"""Spark's own Kafka connector and ours on Barnabas: each reads what the other writes, row by row."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from interop.brokers import Broker
from interop.clients import Client
from interop.topics import make_topic
from pyspark.sql import DataFrame, SparkSession

from support.source_rows import WAIT_S, producer
from support.spark_topics import fill, fill_in_transactions, read, rows
from support.waiting import until

PARTITIONS = 3
PER_PARTITION = 2_000
PAIRS = [("kafka", "barnabas"), ("barnabas", "kafka"), ("kafka", "kafka")]


@pytest.fixture(scope="module")
def filled(broker: Broker, helper: Client) -> str:
    """Write records of all kinds to a topic."""
    name = make_topic(helper, "spark-filled", PARTITIONS, retention_ms="-1")
    fill(broker.bootstrap, name, partitions=PARTITIONS, per_partition=PER_PARTITION)
    return name


@pytest.fixture
def target_topic(helper: Client, names: Iterator[str]) -> str:
    """Create an empty topic for the test."""
    return make_topic(helper, next(names), PARTITIONS)


def append(frame: DataFrame, source: str, bootstrap: str, topic: str, **options: str) -> None:
    writer = frame.write.format(source).option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    writer.options(**options).mode("append").save()


def stream(frame: DataFrame, source: str, bootstrap: str, topic: str, checkpoint: str) -> None:
    """Write all available rows of a stream, in micro-batches."""
    query = (
        frame.writeStream.format(source)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


def test_the_connector_and_ours_read_the_same_rows(spark: SparkSession, broker: Broker, filled: str) -> None:
    theirs = read(spark, "kafka", broker.bootstrap, filled, includeHeaders="true")
    ours = read(spark, "barnabas", broker.bootstrap, filled, includeHeaders="true")
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)
    assert len(rows(ours)) == PARTITIONS * PER_PARTITION


def test_the_same_offsets_return_the_same_rows(spark: SparkSession, broker: Broker, filled: str) -> None:
    options = {
        "startingOffsets": json.dumps({filled: {"0": 17, "1": -2, "2": 1999}}),
        "endingOffsets": json.dumps({filled: {"0": 18, "1": 1234, "2": -1}}),
        "includeHeaders": "true",
    }
    theirs = rows(read(spark, "kafka", broker.bootstrap, filled, **options))
    assert rows(read(spark, "barnabas", broker.bootstrap, filled, **options)) == theirs
    assert len(theirs) == 1 + 1234 + 1


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_each_reads_what_the_other_writes(
    spark: SparkSession, broker: Broker, filled: str, target_topic: str, writer: str, reader: str
) -> None:
    contents = ("hex(key)", "hex(value)", "partition", "cast(headers as string)")
    source = read(spark, "kafka", broker.bootstrap, filled, includeHeaders="true")
    append(
        source.selectExpr("key", "value", "headers", "partition"),
        writer,
        broker.bootstrap,
        target_topic,
        includeHeaders="true",
    )
    written = read(spark, reader, broker.bootstrap, target_topic, includeHeaders="true")
    found = sorted(map(str, written.selectExpr(*contents).collect()))
    assert found == sorted(map(str, source.selectExpr(*contents).collect()))


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_a_stream_of_one_is_written_by_the_other(
    spark: SparkSession,
    broker: Broker,
    filled: str,
    target_topic: str,
    checkpoint: str,
    writer: str,
    reader: str,
) -> None:
    source = (
        spark.readStream.format(reader)
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", filled)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "4000")
        .load()
    )
    frame = source.selectExpr("key", "coalesce(value, binary('none')) value")
    stream(frame, writer, broker.bootstrap, target_topic, checkpoint)
    options = {"kafka.isolation.level": "read_committed"}
    written = read(spark, "kafka", broker.bootstrap, target_topic, **options)
    assert written.count() == PARTITIONS * PER_PARTITION
    expected = read(spark, "kafka", broker.bootstrap, filled).selectExpr(
        "key", "coalesce(value, binary('none')) value"
    )
    assert written.select("key", "value").exceptAll(expected).isEmpty()


@pytest.mark.parametrize("reader", ["kafka", "barnabas"])
def test_aborted_records_are_not_read(
    spark: SparkSession, broker: Broker, helper: Client, target_topic: str, reader: str
) -> None:
    values = [f"{'no' if number % 3 == 0 else 'yes'} {number}" for number in range(12)]
    fill_in_transactions(broker.bootstrap, target_topic, values, transactional_id=target_topic)
    options = {"kafka.isolation.level": "read_committed"}
    committed = read(spark, reader, broker.bootstrap, target_topic, **options).orderBy("offset")
    found = [row.text for row in committed.selectExpr("string(value) text").collect()]
    assert found == [value for value in values if not value.startswith("no")]
    assert read(spark, reader, broker.bootstrap, target_topic).count() == len(values)


@pytest.mark.parametrize("reader", ["kafka", "barnabas"])
def test_a_stream_reads_an_open_transaction_after_its_commit_and_never_aborted_records(
    spark: SparkSession, broker: Broker, target_topic: str, checkpoint: str, reader: str
) -> None:
    values = ["yes 0", "no 1", "yes 2", "no 3"]
    fill_in_transactions(broker.bootstrap, target_topic, values, transactional_id=target_topic)
    source = (
        spark.readStream.format(reader)
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", target_topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    found: list[str] = []
    writer = source.selectExpr("string(value) text").writeStream.option("checkpointLocation", checkpoint)
    writer = writer.foreachBatch(lambda batch, _: found.extend(row.text for row in batch.collect()))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        assert found == ["yes 0", "yes 2"]
        opened = {}
        for value in ("committed", "aborted"):
            opened[value] = begun(broker.bootstrap, target_topic, f"{target_topic}-{value}", value)
        behind = producer(broker.bootstrap)
        behind.produce(target_topic, "behind", partition=0)
        assert behind.flush(WAIT_S) == 0
        query.processAllAvailable()
        assert found == ["yes 0", "yes 2"]
        opened["committed"].commit_transaction(WAIT_S)
        until(lambda: found[2:] or query.exception())
        query.processAllAvailable()
        assert found == ["yes 0", "yes 2", "committed"]
        opened["aborted"].abort_transaction(WAIT_S)
        until(lambda: found[3:] or query.exception())
    finally:
        query.stop()
    assert found == ["yes 0", "yes 2", "committed", "behind"]
    everything = read(spark, reader, broker.bootstrap, target_topic).selectExpr("string(value) text")
    assert {row.text for row in everything.collect()} == {*values, "committed", "aborted", "behind"}


def begun(bootstrap: str, topic: str, transactional_id: str, value: str) -> Producer:
    """Begin a transaction with a record in it."""
    writer = producer(bootstrap, transactional_id=transactional_id)
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    writer.produce(topic, value, partition=0)
    assert writer.flush(WAIT_S) == 0
    return writer
