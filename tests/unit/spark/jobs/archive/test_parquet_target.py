"""An archive's directory after runs that may die at any point."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest, PartSum
from pyspark_barnabas.jobs.archive.parquet_target import MANIFEST, ArchiveTarget

TP = TopicPartition("orders", 3)


def manifest(run: int) -> ArchiveManifest:
    sums = (PartSum("orders", "2026-01-01", 3, 10, (1 << 64) - 1, run * 10, run * 10 + 9),)
    return ArchiveManifest(
        run, "read_committed", {"orders": "ab" * 16}, {TP: run * 10}, {TP: run * 10 + 10}, sums
    )


def commit(target: ArchiveTarget, run: int) -> None:
    staged = target.staging(run)
    staged.mkdir()
    (staged / "part.parquet").write_bytes(b"rows")
    target.commit(manifest(run), staged)


def test_the_newest_run_has_the_state(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path / "archive")
    assert target.newest() is None
    with target.locked():
        commit(target, 1)
        commit(target, 2)
    assert target.newest() == manifest(2)
    assert target.manifest(1) == manifest(1)


def test_an_uncommitted_run_is_invisible_and_removed(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path)
    commit(target, 1)
    left = target.staging(2)
    left.mkdir()
    (left / MANIFEST).write_text(manifest(2).to_json())
    assert target.newest() == manifest(1)
    assert target.staging(2) != left
    assert not left.exists()


def test_a_missing_run_is_reported(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path)
    for run in (1, 2, 3):
        commit(target, run)
    target.path(2).rename(tmp_path / "elsewhere")
    with pytest.raises(ArchiveError, match="run=00000002 is missing"):
        target.newest()


@pytest.mark.parametrize("text", ["", "{}", '{"version": 9}', "[]"])
def test_a_damaged_manifest_is_reported(tmp_path: Path, text: str) -> None:
    target = ArchiveTarget(tmp_path)
    commit(target, 1)
    (target.path(1) / MANIFEST).write_text(text)
    with pytest.raises(ArchiveError, match="not a valid archive manifest"):
        target.newest()


def test_two_runs_cannot_write_concurrently(tmp_path: Path) -> None:
    with (
        ArchiveTarget(tmp_path).locked(),
        pytest.raises(ArchiveError, match="another run"),
        ArchiveTarget(tmp_path).locked(),
    ):
        pass
    with ArchiveTarget(tmp_path).locked():
        pass


def test_a_run_never_replaces_another(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path)
    commit(target, 1)
    with pytest.raises(OSError, match="not empty"):
        commit(target, 1)
    assert target.newest() == manifest(1)
