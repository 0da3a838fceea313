"""Reading, writing and flows on the installed Spark: `make test-spark-versions` tries each version."""

import json
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.pipelines.state import FlowState
from pyspark_barnabas.source.stream_reader import HAS_LIMITS
from support.pipelines import Scene
from support.source_rows import consumed_rows, fill, frame_rows, source_options
from support.spark_topics import committed_values

FLOWS = """
  of_topic:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING'}
    to: {parquet: out}
  of_table:
    from: {delta: table}
    to: {topic: TARGET}
"""
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


@pytest.fixture
def filled(broker: EmbeddedBroker, topic: str) -> str:
    """Write records of every kind to a topic."""
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 60, 2, compression_type="zstd")
    return topic


def test_a_topic_is_read_like_by_a_consumer(spark: SparkSession, broker: EmbeddedBroker, filled: str) -> None:
    for transport in ({}, {"transport": "files", "logDirs": str(broker.directory)}):
        options = source_options(broker.bootstrap, filled, includeHeaders="true", **transport)
        frame = spark.read.format("barnabas").options(**options).load()
        assert frame.columns == COLUMNS
        assert frame_rows(frame) == consumed_rows(broker.bootstrap, filled)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_frame_is_written(spark: SparkSession, broker: EmbeddedBroker, topic: str, delivery: str) -> None:
    broker.create_topic(topic, 2)
    rows = spark.range(200).selectExpr("string(id) value", "string(id % 7) key")
    writer = rows.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.options(topic=topic, delivery=delivery).mode("append").save()
    assert committed_values(broker.bootstrap, topic) == sorted(map(str, range(200)))


def copy(source: DataFrame, broker: EmbeddedBroker, topic: str, checkpoint: Path) -> None:
    writer = source.writeStream.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.options(topic=topic, checkpointLocation=str(checkpoint)).trigger(availableNow=True)
    assert writer.start().awaitTermination(120)


def test_a_stream_is_written_exactly_once_and_continues_where_it_ended(
    spark: SparkSession, broker: EmbeddedBroker, filled: str, tmp_path: Path
) -> None:
    target = f"{filled}-copy"
    broker.create_topic(target, 2)
    for _ in range(2):
        options = source_options(broker.bootstrap, filled, startingOffsets="earliest")
        source = spark.readStream.format("barnabas").options(**options).load()
        copy(source.selectExpr("string(offset) value", "partition"), broker, target, tmp_path)
        expected = sorted(str(row.offset) for row in consumed_rows(broker.bootstrap, filled))
        assert committed_values(broker.bootstrap, target) == expected
        fill(broker.bootstrap, filled, 20, 2)


def test_a_limit_is_respected_or_rejected_and_never_ignored(
    spark: SparkSession, broker: EmbeddedBroker, filled: str, tmp_path: Path
) -> None:
    options = source_options(broker.bootstrap, filled, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    source = spark.readStream.format("barnabas").options(**options).load()
    sizes: list[int] = []
    writer = source.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    if HAS_LIMITS:
        assert writer.start().awaitTermination(120)
        assert sizes == [20, 20, 20]
        return
    assert pyspark.__version__.startswith("4.1.")
    with pytest.raises((PySparkException, StreamingQueryException), match=r"need Spark 4\.2"):
        writer.start().awaitTermination(120)


def test_flows_read_new_records_of_a_topic_and_a_delta_table_once(scene: Scene) -> None:
    for first in (0, 10, 20):
        scene.send_ids(first, first + 10)
        rows = pa.table({"id": list(range(first, first + 10))})
        write_deltalake(scene.home / "table", rows, mode="append")
        ended = scene.run(FLOWS).values()
        assert [(each.state, each.error) for each in ended] == [(FlowState.DONE, None)] * 2
        out = scene.spark.read.parquet(str(scene.home / "out"))
        assert sorted(row.id for row in out.collect()) == list(range(first + 10))
        of_table = [json.loads(value)["id"] for value, _ in scene.records(scene.target)]
        assert sorted(of_table) == list(range(first + 10))
