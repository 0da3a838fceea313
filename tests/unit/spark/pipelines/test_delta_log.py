"""Added rows in a Delta table's log, on tables that delta-rs writes, without Spark."""

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Changes
from pyspark_barnabas.pipelines.sources.delta import rows_of, split_into_tasks
from pyspark_barnabas.pipelines.sources.delta_log import (
    AddedFile,
    DeltaOffset,
    added,
    added_in,
    between,
    check_readable,
    end_of,
)

DAY = datetime.date(2026, 1, 1)
SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("day", pa.date32()), ("more", pa.int32())])


def append(table: Path, *ids: int, kind: str | None = "a b%/ü") -> None:
    rows = pa.table(
        {"id": list(ids), "kind": pa.array([kind] * len(ids), pa.string()), "day": [DAY] * len(ids)}
    )
    write_deltalake(table, rows, mode="append", partition_by=["kind", "day"])


def ids(table: Path, files: list[AddedFile]) -> list[int]:
    return [
        row for file in files for batch in rows_of(table, file, SCHEMA) for row in batch["id"].to_pylist()
    ]


def test_files_are_returned_once_by_version_with_their_partitions(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3, kind=None)
    begin = DeltaOffset(1, 1, 0)
    snapshot = end_of(tmp_path, begin, None, Changes.FAIL)
    assert snapshot == DeltaOffset(1, 1, 2)
    assert end_of(tmp_path, snapshot, None, Changes.FAIL) == snapshot
    append(tmp_path, 4)
    append(tmp_path, 5)
    one = end_of(tmp_path, begin, 1, Changes.FAIL)
    assert one == DeltaOffset(1, 1, 1)
    three = end_of(tmp_path, one, 2, Changes.FAIL)
    assert three == DeltaOffset(1, 2, 1)
    last = end_of(tmp_path, three, None, Changes.FAIL)
    assert last == DeltaOffset(1, 3, 1)
    found = [between(tmp_path, *pair, Changes.FAIL) for pair in ((begin, one), (one, three), (three, last))]
    assert sorted(ids(tmp_path, found[0] + found[1][:1])) == [1, 2, 3]
    assert (ids(tmp_path, found[1][1:]), ids(tmp_path, found[2])) == ([4], [5])
    [batch] = rows_of(tmp_path, found[2][0], SCHEMA)
    assert batch.to_pylist() == [{"id": 5, "kind": "a b%/ü", "day": DAY, "more": None}]


def test_line_ends_of_unicode_in_strings_do_not_end_actions() -> None:
    text = "a\u0085b\u2028c\u2029d"
    add = {
        "path": "1.parquet",
        "size": 5,
        "dataChange": True,
        "partitionValues": {"kind": text},
        "stats": text,
    }
    commit = "\n".join(
        json.dumps(action, ensure_ascii=False) for action in ({"commitInfo": {}}, {"add": add})
    )
    assert added_in(commit, "delta t", 1, Changes.FAIL) == [AddedFile("1.parquet", 5, {"kind": text})]


def test_rewritten_files_are_not_read_and_deletions_are_reported_or_skipped(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    start = end_of(tmp_path, DeltaOffset(1, 1, 0), None, Changes.FAIL)
    DeltaTable(tmp_path).optimize.compact()
    compacted = end_of(tmp_path, start, None, Changes.FAIL)
    assert between(tmp_path, start, compacted, Changes.FAIL) == []
    append(tmp_path, 3)
    DeltaTable(tmp_path).delete("id = 3")
    append(tmp_path, 4)
    with pytest.raises(
        FlowError, match=r"version 4 deletes or rewrites rows .1 files are removed.*changes: skip"
    ):
        end_of(tmp_path, compacted, None, Changes.FAIL)
    end = end_of(tmp_path, compacted, None, Changes.SKIP)
    assert ids(tmp_path, between(tmp_path, start, end, Changes.SKIP)) == [3, 4]


def test_a_cleaned_log_and_a_vacuumed_file_are_reported(tmp_path: Path) -> None:
    for number in range(3):
        append(tmp_path, number)
    DeltaTable(tmp_path).create_checkpoint()
    for number in range(2):
        (tmp_path / "_delta_log" / f"{number:020}.json").unlink()
    with pytest.raises(FlowError, match="version 1 is no longer in the table's log"):
        added(tmp_path, 0, 1, Changes.FAIL)
    assert added(tmp_path, 0, 3, Changes.FAIL) is None
    with pytest.raises(FlowError, match="version 9 is no longer"):
        added(tmp_path, 9, 9, Changes.FAIL)
    with pytest.raises(FlowError, match=r"file none\.parquet no longer exists; VACUUM"):
        list(rows_of(tmp_path, AddedFile("none.parquet", 1, {}), SCHEMA))


def test_unsupported_table_features_are_rejected(tmp_path: Path) -> None:
    append(tmp_path, 1)
    check_readable(DeltaTable(tmp_path), "delta t")
    add = {"path": "a", "size": 1, "partitionValues": {}, "dataChange": True, "deletionVector": {"x": 1}}
    with pytest.raises(FlowError, match="version 7 has deletion vectors"):
        added_in(json.dumps({"add": add}), "delta t", 7, Changes.FAIL)
    mapped = tmp_path / "mapped"
    append(mapped, 1)
    position = mapped / "_delta_log" / f"{0:020}.json"
    by_name = '"configuration":{"delta.columnMapping.mode":"name"}'
    position.write_text(position.read_text().replace('"configuration":{}', by_name))
    with pytest.raises(FlowError, match="requires reader features columns by name"):
        check_readable(DeltaTable(mapped), "delta t")


def test_small_files_share_a_task() -> None:
    files = [AddedFile(str(size), size, {}) for size in (10, 5, 3, 12, 1)]
    shares = [[file.size_bytes for file in share] for share in split_into_tasks(files, 12)]
    assert shares == [[10, 5], [3, 12], [1]]
    assert split_into_tasks([], 12) == []
