"""What rows may be to become Parquet files of batches, and how paths are named to Spark."""

from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from pyspark_barnabas.pipelines.failures import FlowError
from pyspark_barnabas.pipelines.sinks.batch import pattern_of, uri
from pyspark_barnabas.pipelines.sinks.parquet import check_columns


def test_no_column_is_hidden_by_the_name_of_a_batch() -> None:
    check_columns(StructType().add("id", "long").add("batches", "string"))
    with pytest.raises(FlowError, match="column Batch: readers of the files call the batch so"):
        check_columns(StructType().add("id", "long").add("Batch", "string"))


def test_only_patterns_of_spark_are_escaped_and_only_for_readers() -> None:
    path = Path("/a b%20#1/[x] {y,z} q? s*\\")
    assert uri(path) == "file:/a b%20#1/[x] {y,z} q? s*\\"
    assert pattern_of(path) == "file:/a b%20#1/\\[x\\] \\{y,z\\} q\\? s\\*\\\\"
    assert pattern_of(Path("/a b"), "/*") == "file:/a b/*"


def test_a_colon_is_refused_where_hadoop_cannot_read_it() -> None:
    assert pattern_of(Path("/a:b")) == "file:/a:b"
    for path, below in ((Path("/a:b [x]"), ""), (Path("/a:b"), "/*")):
        with pytest.raises(FlowError, match=r"^/a:b.* colon .*give the directory another name"):
            pattern_of(path, below)
