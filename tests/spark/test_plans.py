"""Spark plans over our frames have the results of plain Python over the same rows.

Frames of both transports, in one query and one after the other: filters, unions, self joins, caches.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing import EmbeddedBroker
from support.source_rows import SourceRow, consumed_rows, fill, source_options

PARTITIONS_COUNT = 3
TRANSPORTS = ("fetch", "files")
#: Key of a plan's row: its partition and offset.
PartitionKey = tuple[int, int]


class Filled(NamedTuple):
    """A frame of a topic over each transport, planned once, and the rows in plain Python."""

    frames: Mapping[str, DataFrame]
    rows: list[SourceRow]


@pytest.fixture(scope="module")
def filled(spark: SparkSession, broker: EmbeddedBroker) -> Filled:
    topic = "never-wrong"
    broker.create_topic(topic, PARTITIONS_COUNT)
    fill(broker.bootstrap, topic, 150, PARTITIONS_COUNT)
    frames = {}
    for transport in TRANSPORTS:
        options = source_options(
            broker.bootstrap, topic, transport=transport, logDirs=str(broker.directory), minPartitions="2"
        )
        frames[transport] = spark.read.format("barnabas").options(**options).load()
    return Filled(frames, consumed_rows(broker.bootstrap, topic))


class Condition(NamedTuple):
    """A condition in SQL and in Python."""

    sql: str
    holds: Callable[[SourceRow], Any]


CONDITIONS = st.one_of(
    st.integers(0, 60).map(lambda n: Condition(f"offset < {n}", lambda row: row.offset < n)),
    st.integers(0, 2).map(lambda n: Condition(f"partition = {n}", lambda row: row.partition == n)),
    st.just(Condition("key IS NULL", lambda row: row.key is None)),
    st.just(Condition("value IS NOT NULL", lambda row: row.value is not None)),
    st.integers(0, 6).map(
        lambda n: Condition(f"CAST(key AS STRING) = 'key-{n}'", lambda row: row.key == b"key-%d" % n)
    ),
    st.just(Condition("offset < 0", lambda row: False)),
)


@dataclass(frozen=True)
class Scan:
    """A frame as read over one transport."""

    transport: str
    condition: Condition | None


@dataclass(frozen=True)
class Combined:
    """Two plans combined."""

    how: str
    left: "Plan"
    right: "Plan"


@dataclass(frozen=True)
class Cached:
    """A plan that is cached when it has run."""

    plan: "Plan"


Plan = Scan | Combined | Cached
HOWS = ("union", "intersect", "subtract", "inner", "left_semi", "left_anti")
SCANS = st.builds(Scan, st.sampled_from(TRANSPORTS), st.none() | CONDITIONS)
PLANS = st.recursive(
    SCANS,
    lambda plans: st.builds(Combined, st.sampled_from(HOWS), plans, plans) | st.builds(Cached, plans),
    max_leaves=4,
)


class Run:
    """Plans in Spark and in Python; unpersists cached frames at the end."""

    def __init__(self, filled: Filled) -> None:
        self._filled = filled
        self._cached: list[DataFrame] = []

    def frame(self, plan: Plan) -> DataFrame:
        match plan:
            case Scan(transport, None):
                return self._filled.frames[transport].select("partition", "offset")
            case Scan(transport, condition):
                return self._filled.frames[transport].filter(condition.sql).select("partition", "offset")
            case Cached(inner):
                self._cached.append(self.frame(inner).cache())
                return self._cached[-1]
        left, right = self.frame(plan.left), self.frame(plan.right)
        match plan.how:
            case "union" | "intersect" | "subtract":
                combined: DataFrame = getattr(left, plan.how)(right)
                return combined
        return left.alias("a").join(right.alias("b"), ["partition", "offset"], plan.how)

    def partitions(self, plan: Plan) -> Counter[PartitionKey]:
        match plan:
            case Scan(_, condition):
                rows = (row for row in self._filled.rows if condition is None or condition.holds(row))
                return Counter((row.partition, row.offset) for row in rows)
            case Cached(inner):
                return self.partitions(inner)
        left, right = self.partitions(plan.left), self.partitions(plan.right)
        match plan.how:
            case "union":
                return left + right
            case "intersect":
                return Counter(left.keys() & right.keys())
            case "subtract":
                return Counter(left.keys() - right.keys())
            case "inner":
                return Counter({tp: count * right[tp] for tp, count in left.items()})
        matching = plan.how == "left_semi"
        return Counter({tp: count for tp, count in left.items() if (tp in right) is matching})

    def end(self) -> None:
        for each in self._cached:
            each.unpersist()


few = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HALF = Scan("fetch", Condition("offset < 25", lambda row: row.offset < 25))
WHOLE = Scan("fetch", None)


@few
@given(PLANS)
@example(Combined("union", Cached(HALF), Combined("left_anti", WHOLE, HALF)))
@example(Combined("inner", Combined("union", WHOLE, HALF), Scan("files", None)))
def test_a_plan_has_the_rows_of_plain_python_however_often_it_runs(filled: Filled, plan: Plan) -> None:
    run = Run(filled)
    frame, expected = run.frame(plan), sorted(run.partitions(plan).elements())
    try:
        assert frame.count() == len(expected)
        assert sorted(map(tuple, frame.collect())) == expected
    finally:
        run.end()


@settings(few, max_examples=2)
@given(CONDITIONS, CONDITIONS, st.integers(0, 20))
def test_earlier_queries_on_a_frame_do_not_affect_its_rows(
    filled: Filled, one: Condition, other: Condition, limit: int
) -> None:
    rows = filled.rows
    for frame in filled.frames.values():
        assert frame.filter(one.sql).count() == sum(bool(one.holds(row)) for row in rows)
        assert frame.count() == len(rows)
        both = frame.filter(one.sql).filter(other.sql)
        assert both.count() == sum(bool(one.holds(row) and other.holds(row)) for row in rows)
        assert frame.limit(limit).count() == limit


def test_a_cached_frame_outlives_its_topic(spark: SparkSession, broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 30)
    frame = spark.read.format("barnabas").options(**source_options(broker.bootstrap, topic)).load().cache()
    assert frame.count() == 30
    broker.delete_topic(topic)
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(30))
    frame.unpersist()


def partitions_of(rows: list[SourceRow]) -> Iterator[tuple[int, list[SourceRow]]]:
    for index in range(PARTITIONS_COUNT):
        yield index, [row for row in rows if row.partition == index]


def test_sums_and_pairs_equal_those_of_plain_python(filled: Filled) -> None:
    frame = filled.frames["fetch"]
    found = frame.groupBy("partition").agg({"offset": "sum", "value": "count"}).orderBy("partition").collect()
    assert [tuple(row) for row in found] == [
        (index, sum(row.offset for row in rows), sum(row.value is not None for row in rows))
        for index, rows in partitions_of(filled.rows)
    ]
    pairs = frame.filter("offset < 10").alias("a").join(filled.frames["files"].alias("b"), "partition")
    assert pairs.count() == sum(10 * len(rows) for _, rows in partitions_of(filled.rows))
