"""`spark.read.format("barnabas")` on a real session, against a consumer of another make and plain Python."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing import EmbeddedBroker
from support.source_rows import SourceRow, consumed_rows, fill, frame_rows, source_options

PARTITIONS_COUNT = 3


def load(spark: SparkSession, broker: EmbeddedBroker, topic: str, **given: str) -> DataFrame:
    return spark.read.format("barnabas").options(**source_options(broker.bootstrap, topic, **given)).load()


@pytest.mark.parametrize("transport", ["fetch", "files"])
def test_a_frame_has_the_rows_that_a_consumer_sees(
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


def test_a_view_carries_its_options(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.produce(topic, "in a view")
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW records USING barnabas
        OPTIONS (`kafka.bootstrap.servers` '{broker.bootstrap}', SUBSCRIBE '{topic}')"""
    )
    [[value]] = spark.sql("SELECT CAST(value AS STRING) FROM records").collect()
    assert value == "in a view"


def test_a_schema_leaves_out_columns(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
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
def test_a_bad_option_is_named(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, given: dict[str, str], named: str
) -> None:
    broker.create_topic(topic)
    with pytest.raises(AnalysisException, match=named):
        load(spark, broker, topic, **given).count()


def test_a_bad_schema_is_named(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    options = source_options(broker.bootstrap, topic)
    with pytest.raises(AnalysisException, match="no column 'colour'"):
        spark.read.format("barnabas").schema("colour STRING").options(**options).load().count()


def test_a_frame_stays_as_it_was_planned_and_a_new_one_sees_more(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 20)
    frame = load(spark, broker, topic)
    assert frame.count() == 20
    fill(broker.bootstrap, topic, 5)
    assert (frame.count(), load(spark, broker, topic).count()) == (20, 25)


def test_headers_of_batches_are_a_format_of_their_own(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2, compression_type="zstd")
    options = source_options(broker.bootstrap, topic)
    frame = spark.read.format("barnabas-batches").options(**options).load()
    found = frame.groupBy("partition", "compression").agg({"recordsCount": "sum"}).orderBy("partition")
    assert [tuple(row) for row in found.collect()] == [(0, "zstd", 50), (1, "zstd", 50)]


# Never wrong results


@pytest.fixture(scope="module")
def filled(spark: SparkSession, broker: EmbeddedBroker) -> tuple[DataFrame, list[SourceRow]]:
    """A frame that all examples share, and its rows in plain Python."""
    topic = "never-wrong"
    broker.create_topic(topic, PARTITIONS_COUNT)
    fill(broker.bootstrap, topic, 150, PARTITIONS_COUNT)
    return load(spark, broker, topic), consumed_rows(broker.bootstrap, topic)


#: A condition in SQL and the same in Python.
Condition = tuple[str, Callable[[SourceRow], Any]]

CONDITIONS = st.one_of(
    st.integers(0, 60).map(lambda n: (f"offset < {n}", lambda row: row.offset < n)),
    st.integers(0, 2).map(lambda n: (f"partition = {n}", lambda row: row.partition == n)),
    st.just(("key IS NULL", lambda row: row.key is None)),
    st.just(("value IS NOT NULL", lambda row: row.value is not None)),
    st.integers(0, 6).map(
        lambda n: (f"CAST(key AS STRING) = 'key-{n}'", lambda row: row.key == b"key-%d" % n)
    ),
    st.just(("offset < 0", lambda row: False)),
)

few = settings(
    max_examples=5,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Filled = tuple[DataFrame, list[SourceRow]]


@few
@given(CONDITIONS, CONDITIONS)
def test_scans_of_one_frame_do_not_share_their_filters(
    filled: Filled, one: Condition, other: Condition
) -> None:
    frame, rows = filled
    assert frame.filter(one[0]).count() == sum(bool(one[1](row)) for row in rows)
    assert frame.count() == len(rows)
    assert frame.filter(other[0]).count() == sum(bool(other[1](row)) for row in rows)
    both = frame.filter(one[0]).filter(other[0]).select("partition", "offset")
    assert sorted(map(tuple, both.collect())) == [row[1:3] for row in rows if one[1](row) and other[1](row)]


@few
@given(CONDITIONS, CONDITIONS)
def test_a_union_has_the_rows_of_both_sides(filled: Filled, one: Condition, other: Condition) -> None:
    frame, rows = filled
    united = frame.filter(one[0]).union(frame).union(frame.filter(other[0])).select("partition", "offset")
    expected = [row for row in rows if one[1](row)] + rows + [row for row in rows if other[1](row)]
    assert sorted(map(tuple, united.collect())) == sorted(row[1:3] for row in expected)


@few
@given(CONDITIONS, CONDITIONS)
def test_a_frame_can_be_joined_with_itself(filled: Filled, one: Condition, other: Condition) -> None:
    frame, rows = filled
    left, right = frame.filter(one[0]).alias("a"), frame.filter(other[0]).alias("b")
    joined = left.join(right, ["partition", "offset"]).select("partition", "offset")
    assert sorted(map(tuple, joined.collect())) == [row[1:3] for row in rows if one[1](row) and other[1](row)]
    [[pairs_count]] = left.join(right, "partition").selectExpr("count(*)").collect()
    assert pairs_count == sum(
        sum(bool(one[1](row)) for row in rows if row.partition == index)
        * sum(bool(other[1](row)) for row in rows if row.partition == index)
        for index in range(PARTITIONS_COUNT)
    )


@few
@given(CONDITIONS, st.integers(0, 20))
def test_a_cached_frame_is_what_it_was(filled: Filled, one: Condition, limit: int) -> None:
    frame, rows = filled
    wanted = sum(bool(one[1](row)) for row in rows)
    cached = frame.filter(one[0]).cache()
    try:
        assert cached.count() == wanted
        assert frame.count() == len(rows)
        assert cached.limit(limit).count() == min(limit, wanted)
        assert cached.filter("partition = 1").count() == sum(
            bool(one[1](row)) for row in rows if row.partition == 1
        )
    finally:
        cached.unpersist()
    assert frame.filter(one[0]).count() == wanted
    assert frame.limit(limit).count() == limit


def test_sums_are_those_of_plain_python(filled: Filled) -> None:
    frame, rows = filled
    found = frame.groupBy("partition").agg({"offset": "sum", "value": "count"}).orderBy("partition").collect()
    assert [tuple(row) for row in found] == [
        (
            index,
            sum(row.offset for row in rows if row.partition == index),
            sum(row.value is not None for row in rows if row.partition == index),
        )
        for index in range(PARTITIONS_COUNT)
    ]
