"""Topics as tables of Spark's catalog and in SQL."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from support.source_rows import fill, source_options


@pytest.fixture
def table(spark: SparkSession, topic: str) -> Iterator[str]:
    """The name of a table that does not exist yet."""
    name = topic.replace("-", "_")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def create(spark: SparkSession, table: str, options: dict[str, str], columns: str = "") -> None:
    given = ", ".join(f"`{name}` '{value}'" for name, value in options.items())
    spark.sql(f"CREATE TABLE {table} {columns} USING barnabas OPTIONS ({given})")


def count(spark: SparkSession, query: str) -> int:
    [[found]] = spark.sql(f"SELECT count(*) FROM {query}").collect()
    return int(found)


def test_a_table_has_the_records_of_each_query_s_time(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 20, 2)
    starting = json.dumps({topic: {"0": 5, "1": -2}})
    create(spark, table, source_options(broker.bootstrap, topic, startingOffsets=starting))
    assert count(spark, table) == 15
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW over_table AS SELECT value FROM {table}")
    fill(broker.bootstrap, topic, 4, 2)
    assert (count(spark, table), count(spark, "over_table")) == (19, 19)


def test_a_query_may_replace_options_of_a_table(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    create(spark, table, source_options(broker.bootstrap, topic))
    assert count(spark, f'{table} WITH (endingOffsets = \'{{"{topic}": {{"0": 7}}}}\')') == 7


def test_a_table_is_read_as_a_stream(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    create(spark, table, source_options(broker.bootstrap, topic, startingOffsets="earliest"))
    query = (
        spark.readStream.table(table)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(60)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 20


def test_batch_headers_are_a_table_too(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    options = f"`kafka.bootstrap.servers` '{broker.bootstrap}', subscribe '{topic}'"
    spark.sql(f"CREATE TABLE {table} USING `barnabas-batches` OPTIONS ({options})")
    assert spark.table(table).agg({"recordsCount": "sum"}).collect()[0][0] == 20


def test_a_table_with_columns_of_its_own_cannot_be_read_and_says_why(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str
) -> None:
    broker.create_topic(topic)
    create(spark, table, source_options(broker.bootstrap, topic), "(value BINARY)")
    with pytest.raises(AnalysisException, match="create the table without columns"):
        count(spark, table)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kafka.sasl.jaas.config": "x"}, "is secret"),
        ({"kafka.ssl.keystore.password": "x"}, "is secret"),
        ({"minPartitions": "many"}, "minPartitions"),
        ({"subscribePattern": "x"}, "exactly one of the options"),
    ],
)
def test_a_table_with_a_secret_or_a_mistake_is_not_created(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str, given: dict[str, str], reason: str
) -> None:
    with pytest.raises(AnalysisException, match=reason):
        create(spark, table, {**source_options(broker.bootstrap, topic), **given})
    assert not spark.catalog.tableExists(table)


def test_inserting_into_a_table_needs_the_options_again(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, table: str
) -> None:
    broker.create_topic(topic)
    create(spark, table, source_options(broker.bootstrap, topic))
    fill(broker.bootstrap, topic, 2)
    with pytest.raises(AnalysisException, match="Spark does not pass the options of a table"):
        spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")
