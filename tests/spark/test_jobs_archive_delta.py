"""The job `archive` into a Delta table: each run is one commit, even if runs die; and restoring from it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive.delta_target import APPLICATION, table_schema
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.restore.job import restore
from pyspark_barnabas.jobs.restore.plan import Request
from support.confluent_transactions import transact
from support.odd_names import ODD_WITH_TABLES
from support.source_rows import SourceRow, consumed_rows, fill, frame_rows, rows_of
from support.spark import worker_environment

#: Ends the process when only the commit is missing.
KILL = """
import os, signal
from pyspark_barnabas.jobs.archive import delta_target
delta_target.DeltaTable.create_write_transaction = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
"""


class Killed(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


def options_of(broker: EmbeddedBroker, *topics: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": ",".join(topics)}


def table_rows(directory: Path) -> list[SourceRow]:
    """Read the table with a Delta reader other than Spark."""
    return sorted(rows_of(DeltaTable(directory).to_pyarrow_table().to_batches()))


def test_runs_are_consecutive_commits_and_can_be_restored(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    options = options_of(broker, topic)
    archive(spark, options, tmp_path / "table", kind="delta")
    assert archive(spark, options, tmp_path / "table").ranges == ()
    transact(broker, topic, topic, "a")
    nothing = archive(spark, options, tmp_path / "table")
    transact(broker, topic, topic, "c")
    last = archive(spark, options, tmp_path / "table")
    assert (nothing.records_count, last.run, last.records_count) == (0, 3, 10)
    expected = consumed_rows(broker.bootstrap, topic, committed=True)
    assert table_rows(tmp_path / "table") == expected
    assert frame_rows(open_archive(tmp_path / "table").records(spark)) == expected
    table = DeltaTable(tmp_path / "table")
    assert table.transaction_version(APPLICATION) == 3
    assert [each["barnabas.run"] for each in table.history(3)] == ["3", "2", "1"]
    restore(spark, Request(options, tmp_path / "table", [topic], f"{topic}-again"))
    again = consumed_rows(broker.bootstrap, f"{topic}-again")
    assert [row._replace(topic=topic) for row in again] == expected
    with pytest.raises(ArchiveError, match="is an archive in the format delta, not parquet"):
        archive(None, options, tmp_path / "table", kind="parquet", dry_run=True)


@pytest.mark.long
def test_a_run_killed_at_any_step_is_committed_once(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 50)
    arguments = ["jobs", "archive", str(tmp_path), "-b", broker.bootstrap, "-t", topic, "--format", "delta"]
    ended = subprocess.run(
        [sys.executable, "-c", f"{KILL}\nfrom barnabas.cli.main import main; main()", *arguments],
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list(tmp_path.glob("topic=*/date=*/*.parquet")) != []
    assert open_archive(tmp_path).runs() == []
    commit = DeltaTable.create_write_transaction

    def commit_and_die(*args: Any, **options: Any) -> None:
        commit(*args, **options)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", commit_and_die)
        with pytest.raises(Killed):
            archive(spark, options_of(broker, topic), tmp_path)
    assert archive(spark, options_of(broker, topic), tmp_path).ranges == ()
    assert table_rows(tmp_path) == consumed_rows(broker.bootstrap, topic)


def test_a_table_may_be_below_unusual_directory_names(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    directory = tmp_path / ODD_WITH_TABLES
    for run in (1, 2):
        fill(broker.bootstrap, topic, 20, 2)
        assert archive(spark, options_of(broker, topic), directory, kind="delta").run == run
    assert frame_rows(open_archive(directory).records(spark)) == consumed_rows(broker.bootstrap, topic)
    assert [path.name for path in tmp_path.iterdir()] == [ODD_WITH_TABLES]


def test_a_path_that_delta_rs_misinterprets_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="path of a Delta table must not contain square brackets"):
        open_archive(tmp_path / "a%20b", "delta")


def test_a_foreign_table_is_not_changed(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic)
    DeltaTable.create(tmp_path, table_schema(), name="mine")
    with pytest.raises(ArchiveError, match="not an archive"):
        archive(None, options_of(broker, topic), tmp_path, dry_run=True)
