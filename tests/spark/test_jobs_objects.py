"""The jobs `archive`, `restore` and `scrub` with an object store: complete runs only, whatever dies or competes."""

import json
import signal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.objects.opening import open_store
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive import job
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.jobs.archive.snapshot import ArchiveSnapshot
from pyspark_barnabas.jobs.common.session import TaskError
from pyspark_barnabas.jobs.restore.job import restore
from pyspark_barnabas.jobs.restore.mapped import restore_mapped
from pyspark_barnabas.jobs.scrub.archives import CHANGED, CUT, MISSING, scrub_archive
from support.archives import WAIT_S, Bucket, Killed, run_command, start_command
from support.confluent_transactions import transact
from support.object_server import SECRET, ObjectServer
from support.source_rows import consumed_rows, fill, frame_rows
from support.waiting import until

#: Ends the process when all files are written and verified, and only the manifest is missing.
KILL = """
import os, signal
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget
ObjectTarget.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""
#: Waits for its end when all files are written.
WAIT = """
import signal
from pyspark_barnabas.jobs.archive import job
job.verified = lambda *_: signal.pause()
"""


@pytest.fixture
def bucket(server: ObjectServer, broker: EmbeddedBroker, spark: SparkSession, topic: str) -> Bucket:
    return Bucket(server, broker, spark, topic)


def test_runs_continue_after_the_last_one_and_keep_everything(bucket: Bucket) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 200, 2)
    transact(bucket.broker, bucket.topic, bucket.topic, "cac")
    first = bucket.archive()
    assert bucket.archive().ranges == ()
    transact(bucket.broker, bucket.topic, bucket.topic, "a")
    nothing = bucket.archive()
    fill(bucket.broker.bootstrap, bucket.topic, 100, 2)
    last = bucket.archive()
    assert (first.run, nothing.run, last.run) == (1, 2, 3)
    assert (first.records_count, nothing.records_count, last.records_count) == (220, 0, 100)
    assert bucket.rows() == consumed_rows(bucket.broker.bootstrap, bucket.topic, committed=True)
    assert bucket.stored_keys() == bucket.listed_keys()
    assert all(
        f"/topic={bucket.topic}/date=" in key
        for key in bucket.stored_keys()
        if not key.endswith("/_manifest.json")
    )


def test_an_archive_is_copied_to_a_directory_and_back_and_continues_there(
    bucket: Bucket, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    for write in (bucket.archive, lambda: archive(bucket.spark, bucket.options, local)):
        fill(bucket.broker.bootstrap, bucket.topic, 50, 2)
        write()
        for key in bucket.stored_keys():
            (local / key).parent.mkdir(parents=True, exist_ok=True)
            (local / key).write_bytes(bucket.store.read(key))
        for key, _ in open_store(local).list():
            bucket.store.write(key, [(local / key).read_bytes()])
    fill(bucket.broker.bootstrap, bucket.topic, 50, 2)
    assert bucket.archive().run == 3
    expected = consumed_rows(bucket.broker.bootstrap, bucket.topic)
    assert bucket.rows() == expected
    copied = ArchiveTarget(local).records(bucket.spark)
    assert frame_rows(copied) == [row for row in expected if row.offset < 50]
    assert copied.drop("run").schema == bucket.target.records(bucket.spark).schema
    for location, settings in ((local, None), (bucket.location, bucket.server.settings)):
        assert scrub_archive(bucket.spark, location, settings=settings).findings == ()


def test_a_run_that_dies_at_any_step_is_not_visible_and_the_next_completes(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 60, 2)

    def die(*_: object) -> None:
        raise Killed

    for owner, name in ((job, "verified"), (ObjectTarget, "commit")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, die)
            with pytest.raises(Killed):
                bucket.archive()
        assert bucket.target.newest() is None
        assert bucket.stored_keys() != set()
    with monkeypatch.context() as patch:
        patch.setattr(ObjectTarget, "_remove_unlisted", die)
        with pytest.raises(Killed):
            bucket.archive()
    assert bucket.stored_keys() > bucket.listed_keys()
    assert bucket.archive().ranges == ()
    assert bucket.rows() == consumed_rows(bucket.broker.bootstrap, bucket.topic)
    fill(bucket.broker.bootstrap, bucket.topic, 10, 2)
    assert bucket.archive().run == 2
    assert bucket.stored_keys() == bucket.listed_keys()


@pytest.mark.parametrize("lost", ["before it verifies", "before it commits"])
def test_of_two_runs_at_once_one_is_complete(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 60, 2)
    verified = job.verified

    def overtaken(records: DataFrame, files: DataFrame) -> object:
        monkeypatch.setattr(job, "verified", verified)
        if lost == "before it verifies":
            bucket.archive()
            return verified(records, files)
        sums = verified(records, files)
        bucket.archive()
        return sums

    monkeypatch.setattr(job, "verified", overtaken)
    with pytest.raises(ArchiveError, match=r"another run wrote to s3://.* and was complete first; run again"):
        bucket.archive()
    assert bucket.target.runs() == [1]
    assert bucket.stored_keys() == bucket.listed_keys()
    assert bucket.rows() == consumed_rows(bucket.broker.bootstrap, bucket.topic)


def test_files_that_differ_from_the_topic_are_not_committed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 60)
    write = ObjectTarget.write

    def losing(target: ObjectTarget, records: DataFrame, staged: object) -> None:
        write(target, records.where("offset != 7"), staged)  # type: ignore[arg-type]

    monkeypatch.setattr(ObjectTarget, "write", losing)
    with pytest.raises(ArchiveError, match="differs between the files and the topic"):
        bucket.archive()
    assert bucket.target.newest() is None


def test_a_topic_is_restored_as_it_was_after_a_run(bucket: Bucket, tmp_path: Path) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 40, 2)
    bucket.archive()
    then = consumed_rows(bucket.broker.bootstrap, bucket.topic)
    transact(bucket.broker, bucket.topic, bucket.topic, "ca")
    fill(bucket.broker.bootstrap, bucket.topic, 20, 2)
    bucket.archive()
    now = consumed_rows(bucket.broker.bootstrap, bucket.topic, committed=True)
    for run, expected in ((None, now), (1, then)):
        kept, produced = f"{bucket.topic}-kept-{run}", f"{bucket.topic}-produced-{run}"
        restore(bucket.spark, bucket.request(kept, run))
        rows = consumed_rows(bucket.broker.bootstrap, kept)
        assert [row._replace(topic=bucket.topic) for row in rows] == expected
        restore_mapped(bucket.spark, bucket.request(produced, run), tmp_path / produced)
        rows = consumed_rows(bucket.broker.bootstrap, produced, committed=True)
        assert [row[3:] for row in rows] == [row[3:] for row in expected]
    with pytest.raises(ArchiveError, match="run 3 is not in the archive; its runs are: 1 to 2"):
        restore(None, bucket.request("any", 3), dry_run=True)


def test_a_snapshot_does_not_change_with_later_runs(bucket: Bucket) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 40, 2)
    bucket.archive()
    then = bucket.rows()
    snapshot = ArchiveSnapshot(bucket.target)
    fill(bucket.broker.bootstrap, bucket.topic, 20, 2)
    bucket.archive()
    assert frame_rows(snapshot.records(bucket.spark)) == then
    assert list(snapshot.runs()) == [1]


def test_a_damaged_object_fails_a_restore_and_is_found_by_a_scrub(bucket: Bucket, topic: str) -> None:
    for _ in range(4):
        fill(bucket.broker.bootstrap, topic, 20, 2)
        bucket.archive()
    settings = bucket.server.settings
    assert scrub_archive(bucket.spark, bucket.location, settings=settings).findings == ()
    keys = [bucket.target.manifest(run).files[0].key for run in (1, 2, 3)]
    contents = [bucket.store.read(key) for key in keys]
    bucket.store.write(keys[0], [contents[0][:-1]])
    bucket.store.write(keys[1], [contents[1][:100] + b"\xff" + contents[1][101:]])
    bucket.store.delete([keys[2]])
    report = scrub_archive(bucket.spark, bucket.location, settings=settings)
    assert {(finding.file, finding.kind) for finding in report.findings} == {
        (keys[0], CUT),
        (keys[1], CHANGED),
        (keys[2], MISSING),
    }
    with pytest.raises(
        TaskError, match=r"bytes, but had|is damaged|does not exist, but is part of the archive"
    ):
        restore(bucket.spark, bucket.request(f"{topic}-again"))


def test_commands_archive_scrub_and_restore_without_showing_secrets(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 20, 2)
    broker = ["-b", bucket.broker.bootstrap]
    results = [
        run_command(bucket.command(name, *arguments), bucket.spark, monkeypatch)
        for name, arguments in (
            ("archive", [*broker, "-t", bucket.topic, "--dry-run"]),
            ("archive", [*broker, "-t", bucket.topic]),
            ("scrub", ["--json", "--report", str(tmp_path / "report")]),
            ("restore", [*broker, "--as", f"{bucket.topic}-again", "--run", "1"]),
        )
    ]
    assert [result.exit_code for result in results] == [0, 0, 0, 0], results
    assert json.loads(results[2].stdout)["records_count"] == 20
    assert (tmp_path / "report" / "findings.parquet").exists()
    bucket.store.delete([bucket.target.manifest(1).files[0].key])
    failed = [
        run_command(arguments, bucket.spark, monkeypatch)
        for arguments in (
            bucket.command("scrub"),
            bucket.command("restore", *broker, "--as", f"{bucket.topic}-third"),
            ["jobs", "archive", "s3://none/a", *bucket.server.arguments, *broker, "-t", bucket.topic],
            ["jobs", "archive", "s3://none/a", *bucket.server.arguments, "--store-option", "nonsense=1"],
        )
    ]
    assert [result.exit_code for result in failed] == [1, 1, 1, 2], [result.output for result in failed]
    assert "missing" in failed[0].stdout
    assert f"error: {bucket.location}/run=00000001/topic={bucket.topic}" in failed[1].stderr
    assert "error: cannot list s3://none/a: bucket 'none' does not exist" in failed[2].stderr
    assert "nonsense" in failed[3].stderr
    shown = "".join(result.output for result in (*results, *failed)) + "".join(capfd.readouterr())
    assert SECRET not in shown


def test_secrets_are_not_in_plans_of_spark(bucket: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 20, 2)
    bucket.archive()
    bucket.target.records(bucket.spark).explain("extended")
    plan = capfd.readouterr().out
    assert "MapInArrow" in plan
    assert SECRET not in plan


@pytest.mark.long
def test_the_next_run_completes_a_command_that_dies_before_it_commits(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 50, 2)
    command = bucket.command("archive", "-b", bucket.broker.bootstrap, "-t", bucket.topic)
    process = start_command([*command, "--master", "local[1]"], KILL, tmp_path / "log")
    assert process.wait(WAIT_S) == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert bucket.target.runs() == []
    assert bucket.stored_keys() != set()
    check_that_the_next_run_completes(bucket, command, monkeypatch)


@pytest.mark.long
def test_the_next_run_completes_a_command_that_is_killed_while_it_writes(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill(bucket.broker.bootstrap, bucket.topic, 5_000, 2)
    command = bucket.command("archive", "-b", bucket.broker.bootstrap, "-t", bucket.topic)
    process = start_command([*command, "--master", "local[1]"], WAIT, tmp_path / "log")
    until(lambda: bucket.stored_keys() or process.poll() is not None)
    process.kill()
    assert process.wait(WAIT_S) == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert bucket.target.runs() == []
    check_that_the_next_run_completes(bucket, command, monkeypatch)


def check_that_the_next_run_completes(
    bucket: Bucket, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_command(command, bucket.spark, monkeypatch)
    assert result.exit_code == 0, result.output
    assert bucket.target.runs() == [1]
    assert bucket.rows() == consumed_rows(bucket.broker.bootstrap, bucket.topic)
    assert bucket.listed_keys() <= bucket.stored_keys()
