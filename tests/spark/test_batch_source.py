"""`spark.read.format("barnabas")` on a real session, compared with a confluent-kafka consumer and plain Python."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing import EmbeddedBroker
from support.source_rows import consumed_rows, fill, frame_rows, source_options

PARTITIONS_COUNT = 3


def load(spark: SparkSession, broker: EmbeddedBroker, topic: str, **given: str) -> DataFrame:
    return spark.read.format("barnabas").options(**source_options(broker.bootstrap, topic, **given)).load()


@pytest.mark.parametrize("transport", ["fetch", "files"])
def test_a_frame_has_the_rows_of_a_consumer(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    broker.create_topic(topic, PARTITIONS_COUNT)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        fill(broker.bootstrap, topic, 100, PARTITIONS_COUNT, compression_type=codec)
    given = {"transport": transport, "logDirs": str(broker.directory), "minPartitions": "4"}
    frame = load(spark, broker, topic, includeHeaders="true", **given)
    assert frame_rows(frame) == consumed_rows(broker.bootstrap, topic)
    assert frame.rdd.getNumPartitions() == 4


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    frame = load(spark, broker, topic)
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert frame.count() == 0


def test_a_view_keeps_its_options(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.produce(topic, "in a view")
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW records USING barnabas
        OPTIONS (`kafka.bootstrap.servers` '{broker.bootstrap}', SUBSCRIBE '{topic}')"""
    )
    [[value]] = spark.sql("SELECT CAST(value AS STRING) FROM records").collect()
    assert value == "in a view"


def test_a_schema_selects_columns(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    options = source_options(broker.bootstrap, topic)
    frame = spark.read.format("barnabas").schema("offset LONG, topic STRING").options(**options).load()
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [(n, topic) for n in range(20)]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"minPartitions": "many"}, "minPartitions"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"startingOffsets": '{"other": {"0": 1}}'}, "lacks"),
    ],
)
def test_an_invalid_option_is_reported(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, given: dict[str, str], named: str
) -> None:
    broker.create_topic(topic)
    with pytest.raises(AnalysisException, match=named):
        load(spark, broker, topic, **given).count()


def test_an_invalid_schema_is_reported(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    options = source_options(broker.bootstrap, topic)
    with pytest.raises(AnalysisException, match="no column 'colour'"):
        spark.read.format("barnabas").schema("colour STRING").options(**options).load().count()


def test_a_frame_keeps_its_offsets_and_a_new_one_has_later_rows(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    frame = load(spark, broker, topic)
    assert frame.count() == 20
    fill(broker.bootstrap, topic, 5)
    assert (frame.count(), load(spark, broker, topic).count()) == (20, 25)


def test_batch_headers_have_their_own_format(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2, compression_type="zstd")
    options = source_options(broker.bootstrap, topic)
    frame = spark.read.format("barnabas-batches").options(**options).load()
    found = frame.groupBy("partition", "compression").agg({"recordsCount": "sum"}).orderBy("partition")
    assert [tuple(row) for row in found.collect()] == [(0, "zstd", 50), (1, "zstd", 50)]
