"""The job `archive` into a Delta table in an object store: each run is one commit, whatever dies or competes."""

import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive import job
from pyspark_barnabas.jobs.archive.delta_object_target import DeltaObjectTarget
from pyspark_barnabas.jobs.archive.delta_target import APPLICATION
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.restore.job import restore
from pyspark_barnabas.jobs.scrub.archives import RECORDS, scrub_archive
from support.archives import WAIT_S, Bucket, Killed, run_command, start_command
from support.confluent_transactions import transact
from support.object_server import ObjectServer
from support.source_rows import SourceRow, consumed_rows, fill, rows_of

#: Ends the process when the manifest exists, and only the commit is missing.
KILL = """
import os, signal
from pyspark_barnabas.jobs.archive.delta_object_target import DeltaTable
DeltaTable.create_write_transaction = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def bucket(server: ObjectServer, broker: EmbeddedBroker, spark: SparkSession, topic: str) -> Bucket:
    return Bucket(server, broker, spark, topic, "delta")


def table_of(bucket: Bucket) -> DeltaTable:
    return DeltaTable(str(bucket.location), storage_options=bucket.server.settings.delta_options())


def table_rows(bucket: Bucket) -> list[SourceRow]:
    """Read the table with a Delta reader other than Spark."""
    return sorted(rows_of(table_of(bucket).to_pyarrow_table().to_batches()))


def test_runs_are_consecutive_commits_and_can_be_restored(bucket: Bucket) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 100, 2)
    bucket.archive()
    assert bucket.archive().ranges == ()
    transact(bucket.broker, bucket.topic, bucket.topic, "a")
    nothing = bucket.archive()
    transact(bucket.broker, bucket.topic, bucket.topic, "c")
    last = bucket.archive()
    assert (nothing.records_count, last.run, last.records_count) == (0, 3, 10)
    expected = consumed_rows(bucket.broker.bootstrap, bucket.topic, committed=True)
    assert table_rows(bucket) == expected
    assert bucket.rows() == expected
    assert [each["barnabas.run"] for each in table_of(bucket).history(3)] == ["3", "2", "1"]
    restore(bucket.spark, bucket.request(f"{bucket.topic}-again"))
    again = consumed_rows(bucket.broker.bootstrap, f"{bucket.topic}-again")
    assert [row._replace(topic=bucket.topic) for row in again] == expected
    with pytest.raises(ArchiveError, match="is an archive in the format delta, not parquet"):
        open_archive(bucket.location, "parquet", bucket.server.settings)


def test_a_table_may_be_optimized_and_a_scrub_compares_its_records(bucket: Bucket) -> None:
    for _ in range(2):
        fill(bucket.broker.bootstrap, bucket.topic, 20, 2)
        bucket.archive()
    assert table_of(bucket).optimize.compact()["numFilesRemoved"] > 0
    settings = bucket.server.settings
    assert scrub_archive(bucket.spark, bucket.location, settings=settings).findings == ()
    table_of(bucket).delete("offset = 3 and partition = 1")
    [finding] = scrub_archive(bucket.spark, bucket.location, settings=settings).findings
    assert (finding.kind, finding.what) == (RECORDS, "partition 1 has 19 records, but 20 were archived")


def test_a_run_that_dies_before_its_commit_is_committed_by_the_next(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 50, 2)

    def die(*_: object, **__: object) -> None:
        raise Killed

    for owner, name in ((job, "verified"), (DeltaTable, "create_write_transaction")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, die)
            with pytest.raises(Killed):
                bucket.archive()
        assert bucket.target.newest() is None
    assert bucket.archive().ranges == ()
    assert bucket.target.runs() == [1]
    assert table_rows(bucket) == consumed_rows(bucket.broker.bootstrap, bucket.topic)


def test_a_run_without_its_files_is_not_committed(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 10)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaObjectTarget, "_commit_to_table", lambda *_: None)
        bucket.archive()
    bucket.store.delete([key for key in bucket.stored_keys() if key.endswith(".parquet")])
    with pytest.raises(
        ArchiveError, match=r"has 0 bytes, but \d+ were archived: delete _barnabas/run=00000001.json"
    ):
        bucket.archive()
    bucket.store.delete(["_barnabas/run=00000001.json"])
    assert bucket.archive().run == 1


def test_of_two_runs_at_once_one_is_committed(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 60, 2)
    verified = job.verified

    def overtaken(records: DataFrame, files: DataFrame) -> object:
        monkeypatch.setattr(job, "verified", verified)
        sums = verified(records, files)
        bucket.archive()
        return sums

    monkeypatch.setattr(job, "verified", overtaken)
    with pytest.raises(ArchiveError, match=r"another run wrote to s3://.* and was complete first; run again"):
        bucket.archive()
    assert table_rows(bucket) == consumed_rows(bucket.broker.bootstrap, bucket.topic)


def test_a_run_that_another_process_has_committed_is_complete(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 10)
    create = DeltaTable.create_write_transaction

    def twice(*args: object, **options: object) -> None:
        monkeypatch.setattr(DeltaTable, "create_write_transaction", create)
        assert bucket.archive().ranges == ()  # it commits the run of which it finds the manifest
        create(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTable, "create_write_transaction", twice)
    assert bucket.archive().run == 1
    assert table_of(bucket).transaction_version(APPLICATION) == 1
    assert table_rows(bucket) == consumed_rows(bucket.broker.bootstrap, bucket.topic)


def test_a_foreign_table_is_not_changed(bucket: Bucket) -> None:
    options = bucket.server.settings.delta_options()
    write_deltalake(str(bucket.location), pa.table({"a": [1]}), storage_options=options)
    fill(bucket.broker.bootstrap, bucket.topic, 1)
    with pytest.raises(ArchiveError, match="is a Delta table but not an archive"):
        bucket.archive()
    assert table_of(bucket).version() == 0


def test_a_prefix_that_delta_rs_misinterprets_is_rejected(bucket: Bucket) -> None:
    with pytest.raises(ArchiveError, match="must have only letters, digits"):
        archive(None, bucket.options, bucket.location / "a b", kind="delta", settings=bucket.server.settings)


@pytest.mark.long
def test_the_next_run_commits_a_command_that_is_killed_before_its_commit(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 50, 2)
    arguments = ["-b", bucket.broker.bootstrap, "-t", bucket.topic, "--format", "delta"]
    command = bucket.command("archive", *arguments)
    process = start_command([*command, "--master", "local[1]"], KILL, tmp_path / "log")
    assert process.wait(WAIT_S) == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert bucket.target.runs() == []
    result = run_command(command, bucket.spark, monkeypatch)
    assert result.exit_code == 0, result.output
    assert bucket.target.runs() == [1]
    assert table_rows(bucket) == consumed_rows(bucket.broker.bootstrap, bucket.topic)
