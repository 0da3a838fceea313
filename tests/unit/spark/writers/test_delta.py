"""Files and metadata that tasks write for a Delta table, without Spark."""

import datetime
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DoubleType,
    LongType,
    StructField,
    StructType,
)

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.delta import check_partitions, delta_schema, files_of, partitioned_files

DAY = datetime.date(2026, 1, 1)
SCHEMA = StructType([StructField("id", LongType(), False), StructField("price", DoubleType())])


def batch(*rows: tuple[int, datetime.date | None, bool]) -> pa.RecordBatch:
    ids, days, flags = zip(*rows, strict=True)
    return pa.record_batch({"id": list(ids), "day": pa.array(days, pa.date32()), "flag": list(flags)})


def test_a_file_has_the_rows_of_one_partition_across_batches(tmp_path: Path) -> None:
    batches = [batch((1, None, True), (2, DAY, True)), batch((3, DAY, True), (4, DAY, False))]
    files = list(files_of(str(tmp_path), ("day", "flag"), batches))
    assert [(each["rows"], each["partition"]) for each in files] == [
        (1, [("day", None), ("flag", "true")]),
        (2, [("day", "2026-01-01"), ("flag", "true")]),
        (1, [("day", "2026-01-01"), ("flag", "false")]),
    ]
    found = [pq.read_table(tmp_path / each["path"]) for each in files]
    assert [table.to_pydict() for table in found] == [{"id": [1]}, {"id": [2, 3]}, {"id": [4]}]
    assert [each["bytes"] for each in files] == [(tmp_path / each["path"]).stat().st_size for each in files]


def test_without_partitions_a_task_writes_one_file_or_none_without_rows(tmp_path: Path) -> None:
    rows = batch((1, DAY, True))
    [file] = files_of(str(tmp_path), (), [rows, rows.slice(0, 0), rows])
    assert (file["rows"], file["partition"]) == (2, [])
    assert list(files_of(str(tmp_path), (), [])) == []


def test_a_task_keeps_few_files_open_however_many_partitions_it_has(tmp_path: Path) -> None:
    days = [DAY + datetime.timedelta(days=number) for number in range(300)]
    rows = [batch(*((number, day, True) for number, day in enumerate(days)))] * 2
    with limited_files(len(os.listdir("/dev/fd")) + 150):
        files = partitioned_files(str(tmp_path), ("day",), rows)
    found = [
        (identity, dict(each["partition"])["day"])
        for each in files
        for identity in pq.read_table(tmp_path / each["path"])["id"].to_pylist()
    ]
    assert sorted(found) == sorted([(number, day.isoformat()) for number, day in enumerate(days)] * 2)


@contextmanager
def limited_files(count: int) -> Iterator[None]:
    """Let this process have that many open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_all_columns_of_a_table_are_nullable() -> None:
    nested = StructType([StructField("inner", ArrayType(SCHEMA, False), False)])
    text = delta_schema(nested).to_json()
    assert "false" not in text
    assert '"containsNull":true' in text.replace(" ", "")


def test_a_type_that_delta_does_not_have_is_rejected() -> None:
    with pytest.raises(FlowError, match="cannot be a Delta table's"):
        delta_schema(StructType([StructField("at", CalendarIntervalType())]))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (("none",), "column none not found; the rows have id, price"),
        (("price",), "price is double; must be a string, a whole number, a date or a boolean"),
        (("id", "id"), "names all columns"),
    ],
)
def test_a_table_with_invalid_partitioning_is_rejected(columns: tuple[str, ...], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        check_partitions(SCHEMA, columns)
    check_partitions(SCHEMA, ("id",))
