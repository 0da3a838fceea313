"""`df.write.format("barnabas")`: other clients read what it writes."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.client.producer.partitioner import partition_for_key
from barnabas.testing import EmbeddedBroker

HEADERS_TYPE = "array<struct<key string, value binary>>"
EXACTLY_ONCE = {"delivery": "exactly-once"}


def read(
    broker: EmbeddedBroker, topic: str, partitions_count: int, isolation: str = "read_committed"
) -> list[Message]:
    """Return all records of a topic, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions_count)])
    found: list[Message] = []
    ended: set[int] = set()
    while len(ended) < partitions_count:
        for message in consumer.consume(1_000, 1.0):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def write(frame: DataFrame, broker: EmbeddedBroker, topic: str | None = None, **options: Any) -> None:
    """Append a DataFrame."""
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap).mode("append")
    if topic is not None:
        writer = writer.option("topic", topic)
    writer.options(**options).save()


@pytest.mark.parametrize("options", [{}, EXACTLY_ONCE], ids=["at-least-once", "exactly-once"])
def test_rows_arrive_with_keys_values_and_headers(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, options: dict[str, str]
) -> None:
    broker.create_topic(topic, 3)
    frame = spark.range(5_000).selectExpr(
        "case when id % 3 > 0 then concat('k', id) end key",
        "case when id % 5 > 0 then cast(concat('v', id) as binary) end value",
        f"cast(case when id % 2 = 0 then array(struct('h' key, binary('x') value)) end as {HEADERS_TYPE}) headers",
        "id unknown",
    )
    write(frame, broker, topic, **options)
    found = read(broker, topic, 3)
    expected = [
        (
            f"k{number}".encode() if number % 3 else None,
            f"v{number}".encode() if number % 5 else None,
            [("h", b"x")] if number % 2 == 0 else None,
        )
        for number in range(5_000)
    ]
    order = lambda row: tuple(str(part) for part in row)  # noqa: E731
    assert sorted(((m.key(), m.value(), m.headers()) for m in found), key=order) == sorted(
        expected, key=order
    )
    for message in found:
        if message.key() is not None:
            assert message.partition() == partition_for_key(message.key(), 3)


def test_each_row_may_have_its_topic_partition_and_timestamp(
    spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str]
) -> None:
    topics = [next(names), next(names)]
    for topic in topics:
        broker.create_topic(topic, 2)
    frame = spark.range(100).selectExpr(
        f"case when id % 2 = 0 then '{topics[0]}' else '{topics[1]}' end topic",
        "cast(id div 50 as int) partition",
        "string(id) value",
        "timestamp_millis(1000 * id) timestamp",
    )
    write(frame, broker, includeTimestamp="true")
    for number, topic in enumerate(topics):
        found = [(m.partition(), m.value(), m.timestamp()[1]) for m in read(broker, topic, 2)]
        ids = range(number, 100, 2)
        assert sorted(found) == sorted((each // 50, str(each).encode(), 1_000 * each) for each in ids)


def test_rows_of_a_partition_keep_their_order(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic, 2)
    frame = spark.range(0, 40_000, 1, 1).selectExpr("string(id) value", "cast(id % 2 as int) partition")
    write(frame, broker, topic, **EXACTLY_ONCE, **{"kafka.batch.size": "2k"})
    for message in (found := read(broker, topic, 2)):
        assert int(message.value()) % 2 == message.partition()
    for index in range(2):
        values = [int(m.value()) for m in found if m.partition() == index]
        assert values == sorted(values)
        assert len(values) == 20_000


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_rows_arrive(spark: SparkSession, broker: EmbeddedBroker, topic: str, codec: str) -> None:
    broker.create_topic(topic)
    write(
        spark.range(1_000).selectExpr("string(id) value"), broker, topic, **{"kafka.compression.type": codec}
    )
    assert len(read(broker, topic, 1)) == 1_000


def test_a_failed_job_leaves_no_visible_records(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    frame = spark.range(0, 1_000, 1, 2).selectExpr(
        "string(if(id = 900, raise_error('this row is bad'), id)) value"
    )
    with pytest.raises(PySparkException, match="this row is bad"):
        write(frame, broker, topic, **EXACTLY_ONCE)
    assert read(broker, topic, 1) == []


def test_a_write_with_a_batch_id_is_done_once(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    frame = spark.range(0, 100, 1, 2).selectExpr("string(id) value")
    for batch_id in (0, 0, 1, 1):
        write(frame, broker, topic, **EXACTLY_ONCE, sinkName=f"once-{topic}", batchId=batch_id)
    assert len(read(broker, topic, 1)) == 200
    with pytest.raises(PySparkException, match="has already written batch 1, and got batch 0"):
        write(frame, broker, topic, **EXACTLY_ONCE, sinkName=f"once-{topic}", batchId=0)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["id key"], {}, "a column named value is required; the columns are key"),
        (["id value"], {}, "column value is of type bigint: string or binary is expected"),
        (["'a' value", "1L partition"], {}, "column partition is of type bigint: int is expected"),
        (["'a' value"], {"topic": " "}, "option 'topic' is ' '"),
        (["'a' value"], {"delivery": "twice"}, "option 'delivery' is 'twice'"),
        (["'a' value", "7 partition"], {}, "column partition: 7 is out of range; .* has partitions 0 to 0"),
    ],
)
def test_invalid_columns_are_reported(
    spark: SparkSession,
    broker: EmbeddedBroker,
    topic: str,
    columns: list[str],
    options: dict[str, str],
    message: str,
) -> None:
    broker.create_topic(topic)
    with pytest.raises(PySparkException, match=message):
        write(spark.range(1).selectExpr(*columns), broker, **{"topic": topic, **options})


def test_a_missing_topic_is_reported(spark: SparkSession, topic: str) -> None:
    with (
        EmbeddedBroker({"auto.create.topics.enable": "false"}) as strict,
        pytest.raises(PySparkException, match=f"topic '{topic}' cannot be written to"),
    ):
        write(spark.range(1).selectExpr("'a' value"), strict, topic)


def test_a_record_that_is_too_large_is_reported(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    with pytest.raises(PySparkException, match=r"larger than max\.message\.bytes"):
        write(spark.range(1).selectExpr("repeat('x', 2000000) value"), broker, topic)


def test_only_mode_append_is_supported(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    frame = spark.range(1).selectExpr("'a' value")
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    with pytest.raises(AnalysisException, match="mode overwrite is not supported"):
        writer.option("topic", topic).mode("overwrite").save()


def test_row_timestamps_are_used_only_on_request(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    frame = spark.range(1).selectExpr("'a' value", "timestamp_millis(1000) timestamp")
    write(frame, broker, topic)
    [message] = read(broker, topic, 1)
    now = datetime.datetime.now(datetime.UTC).timestamp()
    assert abs(message.timestamp()[1] / 1_000 - now) < 600
