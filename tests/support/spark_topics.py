"""Records that these tests write to topics, and read back with a client that is not Spark."""

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

#: The connector's columns, including headers, in a sortable form.
COMPARABLE = (
    "topic",
    "partition",
    "offset",
    "hex(key) key",
    "hex(value) value",
    "unix_millis(timestamp) ms",
    "timestampType",
    "transform(headers, each -> each.key || '=' || coalesce(hex(each.value), 'null')) headers",
)

#: Settings of Apache Kafka: few partitions of internal topics, no retention, small segments that are compacted soon.
KAFKA_PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.retention.ms": "-1",
    "log.segment.bytes": str(1 << 20),
    "log.cleaner.backoff.ms": "100",
}


def fill(bootstrap: str, topic: str, *, partitions: int, per_partition: int) -> None:
    """Write records with keys and values, some null, some with headers, compressed, with old timestamps."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd", "linger.ms": 20})
    for partition in range(partitions):
        for number in range(per_partition):
            producer.produce(
                topic,
                None if number % 11 == 0 else f"value {partition} {number}",
                None if number % 7 == 0 else f"key {number}",
                partition=partition,
                timestamp=1_700_000_000_000 + number,
                headers=[("kind", b"odd"), ("nothing", None)] if number % 2 else None,
            )
    assert producer.flush(60) == 0


def fill_in_transactions(bootstrap: str, topic: str, values: list[str], *, transactional_id: str) -> None:
    """Write a transaction for each value; those that begin with "no" are aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    for value in values:
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        if value.startswith("no"):
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def committed_values(bootstrap: str, topic: str) -> list[str]:
    """Return all values of a topic that are not null, sorted."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[str] = []
    ended: set[int] = set()
    while len(ended) < len(partitions):
        for message in consumer.consume(1_000, 1.0):
            if message.error() is not None:
                ended.add(message.partition())
            elif message.value() is not None:
                found.append(message.value().decode())
    consumer.close()
    return sorted(found)


def read(spark: SparkSession, source: str, bootstrap: str, topic: str, **options: str) -> DataFrame:
    """Read a topic with the connector ("kafka") or ours ("barnabas"); only the name differs."""
    return (
        spark.read.format(source)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .options(**options)
        .load()
    )


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """Return all rows in a comparable form, by offset."""
    found = frame.selectExpr(*COMPARABLE).collect()
    return sorted(tuple(str(each) for each in row) for row in found)
