"""Rows become Parquet files of limited size, with statistics."""

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.objects.opening import open_store
from barnabas.tables.data_files import ColumnStatistics, DataFileWriter

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string()), ("at", pa.timestamp("us", "UTC"))])


def writer(directory: Path, file_bytes_max: int = 1 << 20) -> DataFileWriter:
    numbers = count()
    return DataFileWriter(
        open_store(directory), SCHEMA, lambda: f"data/{next(numbers)}.parquet", file_bytes_max
    )


def batch(*numbers: int | None, text: str | None = "x") -> pa.RecordBatch:
    rows = [{"n": number, "text": text, "at": number} for number in numbers]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_a_file_has_its_rows_and_their_bounds(tmp_path: Path) -> None:
    files = writer(tmp_path)
    files.write(batch(3, 1))
    files.write(batch(None, 2))
    [file] = files.close()
    assert pq.read_table(tmp_path / file.path)["n"].to_pylist() == [3, 1, None, 2]
    assert (file.path, file.rows_count) == ("data/0.parquet", 4)
    assert file.size_bytes == (tmp_path / file.path).stat().st_size
    first, last = (datetime(1970, 1, 1, microsecond=number, tzinfo=UTC) for number in (1, 3))
    assert file.statistics == {
        "n": ColumnStatistics(1, 3, 1),
        "text": ColumnStatistics("x", "x", 0),
        "at": ColumnStatistics(first, last, 1),
    }


def test_bounds_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    """Long texts; columns that are null; times that Python cannot represent."""
    files = writer(tmp_path)
    files.write(batch(None, text="x" * 1_000))
    files.write(batch(1 << 61))
    [file] = files.close()
    assert file.statistics["text"].lowest is None
    assert file.statistics["at"] == ColumnStatistics(None, None, 1)
    assert file.statistics["n"].highest == 1 << 61


def test_large_results_take_several_row_groups_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.tables.data_files._ROW_GROUP_BYTES", 10_000)
    files = writer(tmp_path, file_bytes_max=8_000)
    for number in range(40):
        files.write(batch(*range(number * 100, number * 100 + 100)))
    written = files.close()
    assert len(written) > 1
    found = pa.concat_tables(pq.read_table(tmp_path / file.path) for file in written)
    assert found["n"].to_pylist() == list(range(4_000))
    assert pq.ParquetFile(tmp_path / written[0].path).num_row_groups > 1
    assert written[0].statistics["n"].lowest == 0


def test_nothing_is_written_without_rows(tmp_path: Path) -> None:
    assert writer(tmp_path).close() == []
    assert list(tmp_path.iterdir()) == []


def test_discarded_files_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.tables.data_files._ROW_GROUP_BYTES", 1)
    files = writer(tmp_path, file_bytes_max=1)
    files.write(batch(1))
    assert list(tmp_path.rglob("*.parquet"))
    files.write(batch(2))
    files.discard()
    assert not list(tmp_path.rglob("*.parquet"))
