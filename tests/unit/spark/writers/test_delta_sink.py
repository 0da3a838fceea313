"""The sink of the format barnabas-delta, without Spark: options, repeated commits, changes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from barnabas.reading.option_values import OptionError
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.delta import partitioned_files
from pyspark_barnabas.writers.delta_changes import KeyedChanges, last_changes
from pyspark_barnabas.writers.delta_sink import DeltaStreamWriter, FilesWritten, delta_options, stream_writer

SCHEMA = StructType([StructField("id", LongType()), StructField("kind", StringType())])
CHANGE = StructType([*SCHEMA.fields, StructField("at", LongType()), StructField("gone", BooleanType())])
CHANGES = {"keys": "id", "sequenceBy": "at", "deleteColumn": "gone"}


def written(writer: DeltaStreamWriter, rows: list[dict[str, Any]], number: int) -> FilesWritten:
    """Write files as a task does."""
    folder = writer.options.files_of("query")
    folder.mkdir(parents=True, exist_ok=True)
    partition_by = () if writer.options.changes else writer.options.partition_by
    files = partitioned_files(str(folder), partition_by, [pa.RecordBatch.from_pylist(rows)])
    return FilesWritten(BatchName("query", number), files)


def staged(table: Path) -> list[Path]:
    """Return the files of changes that are not applied yet."""
    return [path for path in table.rglob("_barnabas_changes/**/*") if path.is_file()]


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    return rows


def test_a_batch_that_is_committed_again_is_in_the_table_once(tmp_path: Path) -> None:
    writer = stream_writer({"path": str(tmp_path / "t"), "partitionBy": "kind"}, SCHEMA, False)
    rows = [{"id": 1, "kind": "b"}, {"id": 2, "kind": "a"}, {"id": 3, "kind": "b"}]
    for _ in range(2):
        writer.commit([written(writer, rows, 0), None], 0)
    writer.commit([written(writer, [{"id": 4, "kind": "a"}], 1)], 1)
    assert rows_of(tmp_path / "t") == [*rows, {"id": 4, "kind": "a"}]
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 3, "one file for each partition of a task"


def test_a_batch_without_rows_makes_no_commit(tmp_path: Path) -> None:
    writer = stream_writer({"path": str(tmp_path / "t")}, SCHEMA, False)
    writer.commit([FilesWritten(BatchName("query", 0), [])], 0)
    assert not (tmp_path / "t").exists()


def test_changes_replace_and_delete_rows_and_older_ones_change_nothing(tmp_path: Path) -> None:
    writer = stream_writer({"path": str(tmp_path / "t"), **CHANGES}, CHANGE, False)
    first = [
        {"id": 1, "kind": "new", "at": 1, "gone": False},
        {"id": 1, "kind": "paid", "at": 3, "gone": None},
        {"id": 2, "kind": "new", "at": 2, "gone": False},
        {"id": 3, "kind": "never", "at": 4, "gone": True},
    ]
    second = [
        {"id": 1, "kind": "late", "at": 2, "gone": False},
        {"id": 2, "kind": "", "at": 5, "gone": True},
        {"id": 4, "kind": "new", "at": 6, "gone": False},
    ]
    writer.commit([written(writer, first, 0)], 0)
    assert rows_of(tmp_path / "t") == [{"id": 1, "kind": "paid", "at": 3}, {"id": 2, "kind": "new", "at": 2}]
    for _ in range(2):
        written(writer, second, 1)  # by an attempt of a task that was killed
        writer.commit([written(writer, second, 1)], 1)
        assert staged(tmp_path / "t") == []
    assert rows_of(tmp_path / "t") == [{"id": 1, "kind": "paid", "at": 3}, {"id": 4, "kind": "new", "at": 6}]


def test_changes_of_an_aborted_batch_are_removed_but_not_files_that_a_commit_may_have(tmp_path: Path) -> None:
    row = {"id": 1, "kind": "new", "at": 1, "gone": False}
    changing = stream_writer({"path": str(tmp_path / "t"), **CHANGES}, CHANGE, False)
    changing.abort([written(changing, [row], 0), None], 0)
    assert staged(tmp_path / "t") == []
    changing.abort([None], 0)
    appending = stream_writer({"path": str(tmp_path / "u")}, CHANGE, False)
    message = written(appending, [row], 0)
    appending.abort([message], 0)
    appending.commit([message], 0)
    assert rows_of(tmp_path / "u") == [row]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("id", r"column id \(option keys\) is null in 1 of 2 changes"),
        ("at", r"column at \(option sequenceBy\) is null in 1 of 2 changes"),
    ],
)
def test_a_change_without_a_key_or_a_place_in_the_order_is_an_error(
    tmp_path: Path, name: str, says: str
) -> None:
    writer = stream_writer({"path": str(tmp_path / "t"), **CHANGES}, CHANGE, False)
    row: dict[str, Any] = {"id": 1, "kind": "new", "at": 1, "gone": False}
    with pytest.raises(FlowError, match=says):
        writer.commit([written(writer, [row, {**row, name: None}], 0)], 0)
    writer.commit([written(writer, [row], 0)], 0)
    assert rows_of(tmp_path / "t") == [{"id": 1, "kind": "new", "at": 1}]


def test_the_last_change_of_a_key_counts() -> None:
    rows = pa.table({"a": [1, 1, 2], "b": ["x", "x", "x"], "at": [2, 1, 1], "v": [10, 11, 12]})
    found = last_changes(rows, KeyedChanges(("a", "b"), "at")).sort_by("a")
    assert found["v"].to_pylist() == [10, 12]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "the absolute path of the table is expected"),
        ({"path": "relative"}, "the absolute path of the table is expected"),
        ({"path": "/t", "sequenceBy": "at"}, "it requires option keys"),
        ({"path": "/t", "keys": "id"}, "option sequenceBy is missing"),
        (
            {"path": "/t", "keys": "id", "sequenceBy": "when"},
            "column when not found; the rows have id, kind, at",
        ),
        (
            {"path": "/t", "keys": "id", "sequenceBy": "at", "deleteColumn": "kind"},
            "a boolean column is expected",
        ),
        ({"path": "/t", "partitionBy": "no"}, "column no not found"),
        ({"path": "/t", "partitionsBy": "kind"}, "unknown option 'partitionsby': did you mean partitionBy"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        stream_writer(options, CHANGE, False)


def test_output_mode_complete_is_rejected() -> None:
    with pytest.raises(OptionError, match="use append or update"):
        stream_writer({"path": "/t"}, SCHEMA, True)


def test_a_path_may_be_a_file_uri() -> None:
    assert delta_options({"PATH": "file:///t"}).path == Path("/t")
