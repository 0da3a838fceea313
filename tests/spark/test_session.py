"""Spark from pip alone: the JVM, Python workers, and the package in both."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def test_python_workers_find_the_package(spark: SparkSession) -> None:
    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark_barnabas

        yield from (pa.RecordBatch.from_pydict({"name": [pyspark_barnabas.__name__]}) for _ in batches)

    rows = spark.range(1).mapInArrow(imported, "name string").collect()
    assert [row.name for row in rows] == ["pyspark_barnabas"]


def test_the_jvm_checks_bounds_of_columns(spark: SparkSession) -> None:
    arrow = spark.sparkContext._jvm.org.apache.arrow.memory
    assert arrow.BoundsChecking.BOUNDS_CHECKING_ENABLED
