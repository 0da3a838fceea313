"""A Delta table's stream, called as by Spark: batches of files, and the same ones when they are repeated."""

import datetime
import json
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import StructType

from pyspark_barnabas.pipelines.sources.delta import _DeltaFiles, _DeltaStream
from pyspark_barnabas.source.stream_reader import HAS_LIMITS, spark_limits


def append(table: Path, number: int) -> None:
    rows = pa.table({"id": [number], "kind": [f"k{number % 2}"]})
    write_deltalake(table, rows, mode="append", partition_by=["kind"])


def stream(table: Path, **options: str) -> _DeltaStream:
    schema = StructType.fromJson(json.loads(DeltaTable(table).schema().to_json()))
    given = {"path": str(table), "starting": "earliest", "changes": "fail", **options}
    return _DeltaFiles(given).streamReader(schema)


def read(reader: _DeltaStream, start: dict[str, int], end: dict[str, int]) -> list[tuple[Any, ...]]:
    batches = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_a_stream_starts_with_all_rows_and_continues_with_appended_ones(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    reader = stream(tmp_path)
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    assert read(reader, start, end) == [(0, "k0"), (1, "k1"), (2, "k0")]
    append(tmp_path, 3)
    again = stream(tmp_path)
    assert read(again, start, end) == [(0, "k0"), (1, "k1"), (2, "k0")]
    more = again.latestOffset(end, None)
    assert read(again, end, more) == [(3, "k1")]
    assert again.latestOffset(more, None) == more
    assert again.partitions(more, more) == []


def test_without_a_start_the_end_is_after_all_rows_and_nothing_is_repeated(tmp_path: Path) -> None:
    """As Spark 4.1 calls it, whose readers may also restart between two batches."""
    for number in range(2):
        append(tmp_path, number)
    start = stream(tmp_path).initialOffset()
    ends = [stream(tmp_path).latestOffset()]
    assert read(stream(tmp_path), start, ends[0]) == [(0, "k0"), (1, "k1")]
    assert stream(tmp_path).latestOffset() == ends[0]
    for number in range(2, 4):
        append(tmp_path, number)
    ends.append(stream(tmp_path).latestOffset())
    DeltaTable(tmp_path).optimize.compact()
    ends.append(stream(tmp_path).latestOffset())
    append(tmp_path, 4)
    ends.append(stream(tmp_path).latestOffset())
    batches = [read(stream(tmp_path), *pair) for pair in pairwise(ends)]
    assert batches == [[(2, "k0"), (3, "k1")], [], [(4, "k0")]]
    append(tmp_path, 5)
    assert read(stream(tmp_path), start, stream(tmp_path).latestOffset()) == [
        (number, f"k{number % 2}") for number in range(6)
    ]


@pytest.mark.parametrize(("starting", "expected"), [("earliest", [0, 1, 2]), ("latest", [2])])
def test_the_first_batch_is_repeated_from_where_it_began(
    tmp_path: Path, starting: str, expected: list[int]
) -> None:
    """Spark asks for the start again, and the table has a new version."""
    append(tmp_path, 0)
    append(tmp_path, 1)
    reader = stream(tmp_path, starting=starting)
    start = reader.initialOffset()
    append(tmp_path, 2)
    end = reader.latestOffset(start, None)
    append(tmp_path, 3)
    again = stream(tmp_path, starting=starting)
    assert [row[0] for row in read(again, again.initialOffset(), end)] == expected
    assert read(again, end, again.latestOffset(end, None)) == [(3, "k1")]


@pytest.mark.parametrize(("starting", "expected"), [("earliest", [0]), ("latest", [])])
def test_an_end_may_be_older_than_the_start_of_a_query(
    tmp_path: Path, starting: str, expected: list[int]
) -> None:
    """Spark 4.1 asks for the end first."""
    append(tmp_path, 0)
    reader = stream(tmp_path, starting=starting)
    end = reader.latestOffset()
    append(tmp_path, 1)
    assert [row[0] for row in read(reader, reader.initialOffset(), end)] == expected
    assert read(reader, end, reader.latestOffset()) == [(1, "k1")]


def test_columns_of_all_types_are_read_unchanged(tmp_path: Path) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)
    row = {
        "at": at,
        "day": at.date(),
        "price": Decimal("1.50"),
        "flag": True,
        "bytes": b"x",
        "many": [1, 2],
        "inner": {"a": "b"},
    }
    write_deltalake(tmp_path, pa.Table.from_pylist([row]))
    reader = stream(tmp_path)
    start = reader.initialOffset()
    [batch] = [
        batch
        for task in reader.partitions(start, reader.latestOffset(start, None))
        for batch in reader.read(task)
    ]
    assert batch.to_pylist() == [row]


def test_times_that_spark_has_written_are_read_unchanged(tmp_path: Path) -> None:
    """Its default are 96 bits, of which 9999-12-31 is a usual value for "without an end"."""
    row = {
        "until": datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC),
        "many": [datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)],
    }
    rows = pa.Table.from_pylist([row])
    write_deltalake(tmp_path, rows)
    [path] = (tmp_path / name for name in DeltaTable(tmp_path).to_pyarrow_dataset().files)
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, store_schema=False)
    reader = stream(tmp_path)
    start = reader.initialOffset()
    [task] = reader.partitions(start, reader.latestOffset(start, None))
    [batch] = reader.read(task)
    assert batch.to_pylist() == [row]


def test_a_stream_may_start_after_all_rows(tmp_path: Path) -> None:
    append(tmp_path, 0)
    reader = stream(tmp_path, starting="latest")
    start = reader.initialOffset()
    assert reader.latestOffset(start, None) == start
    append(tmp_path, 1)
    assert read(reader, start, reader.latestOffset(start, None)) == [(1, "k1")]


def test_a_batch_has_at_most_the_configured_number_of_files(tmp_path: Path) -> None:
    assert HAS_LIMITS, "the tests run on Spark 4.2 or newer"
    for number in range(3):
        append(tmp_path, number)
    reader = stream(tmp_path, filesMax="2")
    limit = reader.getDefaultReadLimit()
    assert limit == spark_limits.ReadMaxFiles(2)
    start = reader.initialOffset()
    first = reader.latestOffset(start, limit)
    second = reader.latestOffset(first, limit)
    assert [len(read(reader, *pair)) for pair in ((start, first), (first, second))] == [2, 1]
    assert reader.latestOffset(start, spark_limits.ReadAllAvailable()) == second
    assert stream(tmp_path).getDefaultReadLimit() == spark_limits.ReadAllAvailable()
