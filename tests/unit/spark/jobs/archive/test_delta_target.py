"""An archive in a Delta table: a run exists once it is committed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.archive.delta_target import table_schema
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget

TP = TopicPartition("orders", 0)


class Killed(BaseException):
    """Not caught by any handler."""


def manifest(run: int) -> ArchiveManifest:
    return ArchiveManifest(run, "read_committed", {"orders": "ab" * 16}, {TP: run - 1}, {TP: run})


def commit(target: ArchiveTarget, run: int) -> None:
    """Commit one record."""
    staged = target.staging(run)
    folder = staged / "topic=orders" / "date=2026-03-01"
    folder.mkdir(parents=True)
    schema = pa.schema([each for each in table_schema() if each.name not in ("topic", "date")])
    row = {"value": b"%d" % run, "partition": 0, "offset": run - 1, "timestamp": 0, "timestampType": 0}
    pq.write_table(pa.Table.from_pylist([row], schema), folder / f"part-{run}-{staged.name[-8:]}.parquet")
    with target.locked():
        target.commit(manifest(run), staged)


def values(directory: Path) -> list[bytes]:
    return sorted(DeltaTable(directory).to_pyarrow_table()["value"].to_pylist())


def test_the_newest_run_has_the_state_and_the_table_its_rows(tmp_path: Path) -> None:
    target = open_archive(tmp_path, "delta")
    assert target.newest() is None
    with target.locked(), pytest.raises(ArchiveError, match="another run"), target.locked():
        pass
    for run in (1, 2):
        commit(target, run)
    assert open_archive(tmp_path).newest() == manifest(2)
    assert open_archive(tmp_path).manifest(1) == manifest(1)
    table = DeltaTable(tmp_path).to_pyarrow_table()
    assert table["topic"].to_pylist() == ["orders", "orders"]
    assert set(table["date"].to_pylist()) == {"2026-03-01"}
    assert values(tmp_path) == [b"1", b"2"]


def test_an_uncommitted_run_is_invisible_and_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = open_archive(tmp_path, "delta")
    commit(target, 1)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", die)
        with pytest.raises(Killed):
            commit(target, 2)
    assert target.newest() == manifest(1)
    assert values(tmp_path) == [b"1"]
    commit(target, 2)
    assert target.newest() == manifest(2)
    assert values(tmp_path) == [b"1", b"2"]


def test_a_run_is_known_after_the_tables_log_is_cleaned_up(tmp_path: Path) -> None:
    target = open_archive(tmp_path, "delta")
    commit(target, 1)
    table = DeltaTable(tmp_path)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    table.create_checkpoint()
    for path in (tmp_path / "_delta_log").glob("*.json"):
        path.unlink()
    assert open_archive(tmp_path).newest() == manifest(1)
    assert values(tmp_path) == [b"1"]
