"""Pipelines files named by a relative path, below directories with unusual names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from pyspark_barnabas.pipelines.engine import run_pipeline
from pyspark_barnabas.pipelines.parser import read_pipeline
from support.databases import Derby
from support.odd_names import ODD, ODD_WITH_TABLES
from support.pipelines import WAIT_S, Driver

FILE = """\
flows:
  table:
    from: {files: in, format: json, schema: 'id BIGINT'}
    to: {delta: out/table}
  files:
    from: {delta: tables/in}
    to: {parquet: out/files}
"""
FILE_OF_FILES = """\
flows:
  rows:
    from: {files: in, format: json, schema: 'id BIGINT'}
    to: {parquet: out/files}
"""
FILE_OF_DATABASE = """\
flows:
  rows:
    from:
      jdbc: {url: 'URL', table: orders}
      growing: id
    to: {parquet: out/files}
"""


def made(folder: Path) -> Path:
    (folder / "in").mkdir(parents=True)
    return folder


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Derby]:
    database = Derby(spark, tmp_path / "derby")
    database.execute("CREATE TABLE orders (id BIGINT)")
    yield database
    database.shut_down()


def put(folder: Path, first: int, end: int) -> None:
    """Add rows to both sources."""
    lines = "".join(json.dumps({"id": each}) + "\n" for each in range(first, end))
    (folder / "in" / f"{first}.json").write_text(lines)
    write_deltalake(folder / "tables" / "in", pa.table({"id": list(range(first, end))}), mode="append")


def in_table(folder: Path) -> list[int]:
    return sorted(DeltaTable(folder / "out" / "table").to_pyarrow_table()["id"].to_pylist())


def in_files(folder: Path) -> list[int]:
    """Read without Spark."""
    paths = (folder / "out" / "files").glob("batch=*/*.parquet")
    columns = [pq.ParquetFile(path).read().column(0) for path in paths]
    return sorted(each for column in columns for each in column.to_pylist())


def command(folder: Path, name: str) -> None:
    with Driver(Path("p.yml"), command=name, directory=folder) as driver:
        assert driver.process.wait(WAIT_S) == 0, driver.output[-4000:]


def test_a_file_is_run_by_its_relative_path(tmp_path: Path) -> None:
    folder = made(tmp_path / ODD_WITH_TABLES)
    (folder / "p.yml").write_text(FILE)
    for first in (0, 3):
        put(folder, first, first + 3)
        command(folder, "run")
    assert in_table(folder) == in_files(folder) == list(range(6))
    assert (folder / ".pipelines" / "table" / "checkpoint").is_dir()


def test_the_database_extract_is_found_below_such_directories(
    spark: SparkSession, derby: Derby, tmp_path: Path
) -> None:
    folder = made(tmp_path / ODD)
    path = folder / "p.yml"
    path.write_text(FILE_OF_DATABASE.replace("URL", derby.url))
    for number in range(2):
        derby.execute(f"INSERT INTO orders VALUES ({number})")
        [status] = run_pipeline(spark, read_pipeline(path))
        assert status.error is None
    assert in_files(folder) == [0, 1]


def test_files_are_found_below_such_directories(spark: SparkSession, tmp_path: Path) -> None:
    folder = made(tmp_path / ODD)
    path = folder / "p.yml"
    path.write_text(FILE_OF_FILES)
    for number in range(2):
        (folder / "in" / f"{number}.json").write_text(json.dumps({"id": number}))
        [status] = run_pipeline(spark, read_pipeline(path))
        assert status.error is None
    assert in_files(folder) == [0, 1]
