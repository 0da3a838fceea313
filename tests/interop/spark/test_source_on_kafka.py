"""Our source on Apache Kafka over both transports, compared with a confluent-kafka consumer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interop.brokers import Broker
from interop.targets import START
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from support.changing_topics import CODECS, STEPS, TRANSPORTS, Step, Stream, Topic, some
from support.cleaned_logs import is_cleaned
from support.confluent_transactions import transact_at
from support.source_rows import (
    WAIT_S,
    consumed_rows,
    fill,
    frame_rows,
    producer,
    read_rows,
    record,
    source_options,
)
from support.spark_topics import KAFKA_PROPERTIES
from support.waiting import until

#: Compaction as soon as possible; records have old timestamps, so that later ones close a segment.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
}


@pytest.fixture(params=["fetch", "files"])
def transport(request: pytest.FixtureRequest, kafka: Broker) -> dict[str, str]:
    return {"transport": request.param, "logDirs": str(kafka.data_dir)}


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for outcome in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        outcome.result(WAIT_S)


def test_records_of_every_kind_and_codec(
    kafka: Broker, names: Iterator[str], transport: dict[str, str]
) -> None:
    topic = next(names)
    create(kafka.bootstrap, topic, 3)
    for codec in CODECS:
        fill(kafka.bootstrap, topic, 200, 2, compression_type=codec)
    rows = read_rows(source_options(kafka.bootstrap, topic, minPartitions="5", **transport))
    assert len(rows) == 1_000
    assert rows == consumed_rows(kafka.bootstrap, topic)


@settings(some, max_examples=3)
@given(st.sampled_from(["CreateTime", "LogAppendTime"]), STEPS, st.integers(1, 6))
@example("CreateTime", [("fill", "lz4", 40, 2), ("transact", "cac"), ("compact",), ("grow",)], 4)
@example("LogAppendTime", [("fill", "zstd", 9, 2), ("delete", 0, 1.0), ("compact",), ("compact",)], 2)
def test_after_any_changes_of_a_topic(
    kafka: Broker, names: Iterator[str], kind: str, steps: list[Step], tasks: int
) -> None:
    topic = Topic(kafka.bootstrap, kafka.data_dir, next(names), {"message.timestamp.type": kind})
    for step in steps:
        topic.apply(step)
    topic.check(tasks)


def test_a_topic_compacted_by_kafka(kafka: Broker, names: Iterator[str]) -> None:
    topic = Topic(kafka.bootstrap, kafka.data_dir, next(names), COMPACTED)
    partitions = [TopicPartition(topic.name, index) for index in range(topic.partitions_count)]
    for number, codec in enumerate(CODECS):
        fill_keys(topic, range(60), codec)
        transact_at(kafka.bootstrap, topic.name, f"{topic.name}-{number}", "cac", key=b"key-%d" % number)
    fill_keys(topic, range(5), "none")  # a segment is closed by later records
    until(lambda: all(is_cleaned(kafka.data_dir, tp) for tp in partitions))
    leave_as_it_is(topic)
    topic.check(4)
    rows = topic.rows(committed=True)
    offsets = [row.offset for row in rows if row.partition == 0]
    assert len(offsets) < offsets[-1] + 1, "there are gaps"
    for transport in TRANSPORTS:
        options = topic.options(transport, kafka_isolation_level="read_committed", maxOffsetsPerTrigger="50")
        assert Stream(options).finish() == rows


def leave_as_it_is(topic: Topic) -> None:
    """Prevent further cleaning between the two reads."""
    lag = ConfigEntry("min.compaction.lag.ms", str(2**63 - 1), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic.name, incremental_configs=[lag])
    admin = AdminClient({"bootstrap.servers": topic.bootstrap})
    for outcome in admin.incremental_alter_configs([resource]).values():
        outcome.result(WAIT_S)


def fill_keys(topic: Topic, numbers: range, codec: str) -> None:
    """Write records of few keys, some of them tombstones, in small batches."""
    writer = producer(topic.bootstrap, compression_type=codec, batch_num_messages=3)
    for number in numbers:
        key = b"key-%d" % (number * 7 % 20)
        writer.produce(topic.name, partition=number % 2, **{**record(number), "key": key})
    assert writer.flush(WAIT_S) == 0


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_aborted_and_open_transactions(
    kafka: Broker, names: Iterator[str], transport: dict[str, str], level: str
) -> None:
    topic = next(names)
    create(kafka.bootstrap, topic)
    transact_at(kafka.bootstrap, topic, f"{topic}-a", "acca")
    fill(kafka.bootstrap, topic, 30)
    transact_at(kafka.bootstrap, topic, f"{topic}-b", "caco")
    fill(kafka.bootstrap, topic, 5)
    options = source_options(
        kafka.bootstrap, topic, kafka_isolation_level=level, minPartitions="4", **transport
    )
    committed = level == "read_committed"
    assert read_rows(options) == consumed_rows(kafka.bootstrap, topic, committed=committed)


def test_an_archive_is_read_up_to_its_checkpoints(tmp_path: Path) -> None:
    broker = START["kafka"](tmp_path, KAFKA_PROPERTIES)
    try:
        create(broker.bootstrap, "archived")
        fill(broker.bootstrap, "archived", 50)
        transact_at(broker.bootstrap, "archived", "archiver", "cao")
        fill(broker.bootstrap, "archived", 5)
        levels = {
            level: consumed_rows(broker.bootstrap, "archived", committed=level == "read_committed")
            for level in ("read_committed", "read_uncommitted")
        }
    finally:
        broker.stop()
    for level, rows in levels.items():
        options = {"subscribe": "archived", "transport": "files", "logDirs": str(broker.data_dir)}
        assert read_rows({**options, "kafka.isolation.level": level}) == rows


@pytest.mark.parametrize("formats", [("barnabas",) * 2, ("kafka", "barnabas", "kafka")], ids="-".join)
def test_a_stream_reads_each_record_once_with_either_source(
    spark: SparkSession, kafka: Broker, names: Iterator[str], tmp_path: Path, formats: tuple[str, ...]
) -> None:
    topic = next(names)
    create(kafka.bootstrap, topic, 2)
    options = source_options(kafka.bootstrap, topic, startingOffsets="earliest", maxOffsetsPerTrigger="70")
    rows = []
    for source in formats:
        fill(kafka.bootstrap, topic, 100, 2)
        frame = spark.readStream.format(source).options(includeHeaders="true", **options).load()
        writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(frame_rows(batch)))
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S * 3)
    assert sorted(rows) == consumed_rows(kafka.bootstrap, topic)
