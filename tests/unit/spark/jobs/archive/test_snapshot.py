from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.jobs.archive.snapshot import ArchiveSnapshot

TP = TopicPartition("orders", 0)


def commit(target: ArchiveTarget, run: int) -> None:
    staged = target.staging(run)
    staged.mkdir(parents=True)
    target.commit(ArchiveManifest(run, "read_committed", {}, {TP: run - 1}, {TP: run}), staged)


def test_a_snapshot_has_the_runs_up_to_one(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path)
    for run in (1, 2):
        commit(target, run)
    newest, first = ArchiveSnapshot(target), ArchiveSnapshot(target, 1)
    commit(target, 3)
    assert (newest.runs(), first.runs()) == ([1, 2], [1])
    assert newest.manifest(2).ends == {TP: 2}


def test_a_run_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    target = ArchiveTarget(tmp_path)
    with pytest.raises(ArchiveError, match="run 1 is not in the archive; its runs are: none"):
        ArchiveSnapshot(target, 1)
    commit(target, 1)
    with pytest.raises(ArchiveError, match="run 2 is not in the archive; its runs are: 1 to 1"):
        ArchiveSnapshot(target, 2)
