"""Parquet files of tasks: their names, sizes and digests, and what damages them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.objects.directory_store import DirectoryStore
from barnabas.objects.location import ObjectLocation
from barnabas.reading.rows import ARROW_TYPES, arrow_schema_of
from pyspark_barnabas.jobs.archive import object_files
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError
from pyspark_barnabas.jobs.archive.object_files import read_file, slices_of_files, written_files

LOCATION = ObjectLocation("s3", "bucket", "archive")
SCHEMA = pa.schema([*arrow_schema_of(list(ARROW_TYPES)), pa.field("date", pa.string())])


def batch(*days: tuple[str, str], value: bytes = b"value") -> pa.RecordBatch:
    """Return a row for each topic and date."""
    rows = [
        {
            "key": None,
            "value": value,
            "topic": topic,
            "partition": 1,
            "offset": offset,
            "timestamp": offset,
            "timestampType": 0,
            "headers": [{"key": "a", "value": None}],
            "date": date,
        }
        for offset, (topic, date) in enumerate(days)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def written(directory: Path, *batches: pa.RecordBatch) -> list[ArchivedFile]:
    return list(written_files(DirectoryStore(directory), "run=00000001", iter(batches)))


def test_each_topic_and_day_has_its_own_files(tmp_path: Path) -> None:
    first = batch(("a", "2026-01-01"), ("a", "2026-01-02"), ("b", "2026-01-02"))
    files = written(tmp_path, first, batch(("b", "2026-01-02"), ("c", "2026-01-03")))
    assert [(file.topic, file.date, file.records_count) for file in files] == [
        ("a", "2026-01-01", 1),
        ("a", "2026-01-02", 1),
        ("b", "2026-01-02", 2),
        ("c", "2026-01-03", 1),
    ]
    for file in files:
        content = (tmp_path / file.key).read_bytes()
        assert file.key.startswith(f"run=00000001/topic={file.topic}/date={file.date}/part-")
        assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert written(tmp_path) == []


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = batch(("a", "2026-01-01"), ("a", "2026-01-01"))
    [file] = written(tmp_path, rows)
    read = pa.Table.from_batches(read_file(DirectoryStore(tmp_path), LOCATION, file))
    assert read.select(SCHEMA.names).to_pylist() == rows.to_pylist()


def test_a_large_file_is_followed_by_another_one() -> None:
    days = [("a", "2026-01-01")] * 4
    batches = [batch(*days, value=b"x" * 1_000) for _ in range(4)]
    numbers = [number for (_, _, number), _ in slices_of_files(batches, 5_000)]
    assert numbers == [1, 1, 2, 2]


def test_a_file_has_a_row_group_for_each_portion_that_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_files, "_ROW_GROUP_BYTES", 1_000)
    [file] = written(tmp_path, *[batch(("a", "2026-01-01"), value=b"x" * 1_000)] * 3)
    assert pq.ParquetFile(tmp_path / file.key).num_row_groups == 3
    assert file.records_count == 3


def test_batches_are_not_read_ahead_of_the_file_that_needs_them(tmp_path: Path) -> None:
    produced = []

    def batches() -> Iterator[pa.RecordBatch]:
        for day in range(1, 4):
            produced.append(day)
            yield batch(("a", f"2026-01-0{day}"))

    files = written_files(DirectoryStore(tmp_path), "run=00000001", batches())
    next(files)
    assert produced == [1, 2], "the second day ends the file of the first"


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_file_is_an_error_with_its_name(tmp_path: Path, damage: str) -> None:
    [file] = written(tmp_path, batch(("a", "2026-01-01")))
    path = tmp_path / file.key
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-1] if damage == "cut" else content[:-9] + b"x" * 9)
    messages = {
        "missing": "does not exist, but",
        "cut": f"has {len(content) - 1} bytes, but",
        "changed": "is damaged",
    }
    with pytest.raises(ArchiveError, match=f"^{LOCATION}/{file.key} {messages[damage]}"):
        list(read_file(DirectoryStore(tmp_path), LOCATION, file))
