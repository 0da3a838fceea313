"""`df.writeStream.format("barnabas")`: each input is written once, however the stream ends and restarts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.testing import EmbeddedBroker
from barnabas.wire.isolation import Isolation

COUNT = 300


@pytest.fixture
def topics(broker: EmbeddedBroker, names: Iterator[str]) -> tuple[str, str]:
    """Create a topic with inputs and one for outputs."""
    source, sink = next(names), next(names)
    for name in (source, sink):
        broker.create_topic(name, 2)
    send(broker, source, 0, COUNT)
    return source, sink


def send(broker: EmbeddedBroker, topic: str, first: int, end: int) -> None:
    with broker.client.producer() as producer:
        for number in range(first, end):
            producer.send(topic, str(number).encode(), partition=number % 2)


def stream(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> DataFrame:
    source = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    limited = source.option("maxOffsetsPerTrigger", 100).option("startingOffsets", "earliest")
    return limited.option("subscribe", topic).load()


def copy(rows: DataFrame, broker: EmbeddedBroker, topic: str, checkpoint: Path, **options: Any) -> None:
    """Write all available rows."""
    writer = rows.writeStream.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", topic).option("checkpointLocation", str(checkpoint)).options(**options)
    writer.trigger(availableNow=True).start().awaitTermination()


def committed(broker: EmbeddedBroker, topic: str) -> list[int]:
    starts = {TopicPartition(topic, index): EARLIEST for index in range(2)}
    consumer = broker.client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
    return sorted(int(record.value or b"") for record in consumer)


def transactional_ids(broker: EmbeddedBroker) -> set[str]:
    return {each.transactional_id for each in broker.client.transactions.list()}


def test_a_stream_continues_where_it_ended(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    before = transactional_ids(broker)
    copy(stream(spark, broker, source), broker, sink, tmp_path)
    send(broker, source, COUNT, 2 * COUNT)
    copy(stream(spark, broker, source), broker, sink, tmp_path)
    assert committed(broker, sink) == list(range(2 * COUNT))
    fresh = transactional_ids(broker) - before
    assert len({name.rpartition(".")[0] for name in fresh}) == 1
    assert all(name.startswith("barnabas-spark-") for name in fresh)


def test_a_batch_whose_commit_spark_has_lost_is_not_written_again(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    copy(stream(spark, broker, source), broker, sink, tmp_path)
    newest = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    copy(stream(spark, broker, source), broker, sink, tmp_path)
    assert committed(broker, sink) == list(range(COUNT))


def test_at_least_once_needs_no_transactions(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    before = transactional_ids(broker)
    copy(stream(spark, broker, source), broker, sink, tmp_path, delivery="at-least-once")
    assert committed(broker, sink) == list(range(COUNT))
    assert transactional_ids(broker) == before


def test_a_batch_of_foreach_batch_is_written_once(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    failures = [True]

    def write(rows: DataFrame, batch_id: int) -> None:
        options = {"topic": sink, "delivery": "exactly-once", "sinkName": f"each-{sink}", "batchId": batch_id}
        writer = rows.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
        writer.options(**options).mode("append").save()
        if batch_id == 1 and failures:
            failures.pop()
            message = "behind the write"
            raise RuntimeError(message)

    def run() -> None:
        writer = stream(spark, broker, source).writeStream.foreachBatch(write)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()

    with pytest.raises(StreamingQueryException, match="behind the write"):
        run()
    run()
    assert committed(broker, sink) == list(range(COUNT))


def test_a_stream_after_a_shuffle_is_written_once(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, sink = topics
    rows = stream(spark, broker, source).repartition(3, "value").drop("partition")
    copy(rows, broker, sink, tmp_path)
    assert committed(broker, sink) == list(range(COUNT))


def test_output_mode_complete_is_rejected(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    counts = stream(spark, broker, topics[0]).groupBy("value").count().selectExpr("value")
    writer = counts.writeStream.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = (
        writer.option("topic", topics[1]).option("checkpointLocation", str(tmp_path)).outputMode("complete")
    )
    with pytest.raises(PySparkException, match="output mode complete is not supported"):
        writer.trigger(availableNow=True).start().awaitTermination()
