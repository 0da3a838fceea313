"""The job `archive`: every field of every record, once, even if runs die."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive import job
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.restore.mapped import restore_mapped
from pyspark_barnabas.jobs.restore.offset_map import RUNS
from pyspark_barnabas.jobs.restore.plan import Request
from pyspark_barnabas.jobs.scrub.archives import RECORDS, scrub_archive
from pyspark_barnabas.paths import PathError
from support.confluent_transactions import transact
from support.odd_names import ODD
from support.source_rows import consumed_rows, fill, frame_rows
from support.spark import worker_environment


def options_of(broker: EmbeddedBroker, *topics: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": ",".join(topics)}


def archived(spark: SparkSession, directory: Path) -> DataFrame:
    """Read the directory as Parquet."""
    return spark.read.parquet(str(directory))


class Killed(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


def test_runs_continue_after_the_last_one_and_keep_everything(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, names: Iterator[str], tmp_path: Path
) -> None:
    other = next(names)
    broker.create_topic(topic, 3)
    broker.create_topic(other, 1, {"message.timestamp.type": "LogAppendTime"})
    for each in (topic, other):
        fill(broker.bootstrap, each, 200, 1)
    transact(broker, topic, topic, "cac")
    options = options_of(broker, topic, other)
    first = archive(spark, options, tmp_path)
    assert archive(spark, options, tmp_path).ranges == ()
    fill(broker.bootstrap, topic, 100, 3)
    second = archive(spark, options, tmp_path)
    assert (first.run, second.run) == (1, 2)
    assert (first.records_count, second.records_count) == (420, 100)
    shutil.copytree(tmp_path / "run=00000001", tmp_path / "_staging-00000003-left")
    rows = frame_rows(archived(spark, tmp_path))
    expected = [
        row for each in (topic, other) for row in consumed_rows(broker.bootstrap, each, committed=True)
    ]
    assert rows == sorted(expected)
    days = {
        row[0] for row in archived(spark, tmp_path).selectExpr("cast(date as string)").distinct().collect()
    }
    assert "2023-11-14" in days
    assert len(days) == 2, "the day of the records, and of the broker's clock"
    assert ArchiveTarget(tmp_path).manifest(1).sums == first.sums


def test_the_directory_may_have_any_name(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    for run in (1, 2):
        fill(broker.bootstrap, topic, 20, 2)
        assert archive(spark, options_of(broker, topic), tmp_path / ODD).run == run
    expected = consumed_rows(broker.bootstrap, topic)
    assert frame_rows(ArchiveTarget(tmp_path / ODD).records(spark)) == expected
    request = Request(options_of(broker, topic), tmp_path / ODD, [topic], f"{topic}-again")
    restore_mapped(spark, request, tmp_path / f"{ODD} map")
    assert len(consumed_rows(broker.bootstrap, f"{topic}-again")) == len(expected)
    assert (tmp_path / f"{ODD} map" / RUNS).is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {ODD, f"{ODD} map"}


def test_a_directory_that_spark_cannot_read_is_rejected_before_anything_is_written(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 1)
    (tmp_path / "a:b [c]").mkdir()
    with pytest.raises(PathError, match="rename the directory"):
        archive(spark, options_of(broker, topic), tmp_path / "a:b [c]")
    assert [path.name for path in (tmp_path / "a:b [c]").iterdir()] == ["_lock"]


def test_a_run_that_dies_at_any_step_leaves_nothing_and_the_next_completes(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 60, 2)
    options = options_of(broker, topic)

    def die(*_: object) -> None:
        raise Killed

    def commit_and_die(target: ArchiveTarget, manifest: ArchiveManifest, staged: Path) -> None:
        committed(target, manifest, staged)
        raise Killed

    committed = ArchiveTarget.commit
    for tp, name, deed in ((job, "verified", die), (Path, "rename", die)):
        with monkeypatch.context() as patch:
            patch.setattr(tp, name, deed)
            with pytest.raises(Killed):
                archive(spark, options, tmp_path)
        assert ArchiveTarget(tmp_path).newest() is None
        assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("_")] == []
    with monkeypatch.context() as patch:
        patch.setattr(ArchiveTarget, "commit", commit_and_die)
        with pytest.raises(Killed):
            archive(spark, options, tmp_path)
    assert archive(spark, options, tmp_path).ranges == ()
    assert frame_rows(archived(spark, tmp_path)) == consumed_rows(broker.bootstrap, topic)


def test_files_that_differ_from_the_topic_are_not_committed(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 60)
    changes = (
        "offset != 7",
        "1 = 1 union all select * from rows where offset = 7",
    )
    written = job.write
    for change in changes:

        def write(records: DataFrame, target: ArchiveTarget, staged: Path, change: str = change) -> None:
            records.createOrReplaceTempView("rows")
            written(spark.sql(f"select * from rows where {change}"), target, staged)

        with monkeypatch.context() as patch:
            patch.setattr(job, "write", write)
            with pytest.raises(ArchiveError, match="differs between the files and the topic"):
                archive(spark, options_of(broker, topic), tmp_path)
    assert ArchiveTarget(tmp_path).newest() is None


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_scrub_finds_records_that_are_gone_or_changed(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, names: Iterator[str], tmp_path: Path, kind: str
) -> None:
    other = next(names)
    for each in (topic, other):
        broker.create_topic(each)
        fill(broker.bootstrap, each, 20)
    archive(spark, options_of(broker, topic, other), tmp_path, kind=kind)
    assert scrub_archive(spark, tmp_path).findings == ()
    [cut, *_] = sorted(tmp_path.glob(f"**/topic={topic}/date=*/*.parquet"))
    cut.write_bytes(cut.read_bytes()[:-10])
    [finding] = scrub_archive(spark, tmp_path).findings
    assert finding[:4] == (RECORDS, topic, cut.parent.name.removeprefix("date="), "")
    assert "but 20 were archived" in finding.what
    assert scrub_archive(spark, tmp_path, [other]).findings == ()


def test_null_empty_and_swapped_fields_have_different_checksums(spark: SparkSession) -> None:
    rows = ["null, 'a'", "'a', null", "'', 'a'", "'a', ''", "null, null"]
    fields = (
        "'t' topic, 0 partition, 5L offset, timestamp_millis(0) timestamp, 0 timestampType, '1970-01-01' date"
    )
    headers = "cast(null as array<struct<key string, value binary>>) headers"
    frames = [
        spark.sql(
            f"select cast(key as binary) key, cast(value as binary) value, {fields}, {headers} "
            f"from values ({row}) as (key, value)"
        )
        for row in rows
    ]
    assert len({job.sums_of(frame) for frame in frames}) == len(rows)


def test_a_recreated_topic_is_rejected(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, topic, "a")
    assert archive(spark, options_of(broker, topic), tmp_path).records_count == 0
    broker.client.admin.delete_topics([topic])
    broker.create_topic(topic)
    with pytest.raises(ArchiveError, match="was deleted and recreated"):
        archive(spark, options_of(broker, topic), tmp_path)
    with pytest.raises(ArchiveError, match="another directory"):
        archive(spark, {**options_of(broker, topic), "kafka.isolation.level": "read_uncommitted"}, tmp_path)


def test_start_and_end_of_a_run_cannot_be_chosen(tmp_path: Path) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "startingoffsets": "earliest"}
    with pytest.raises(ArchiveError, match="'startingoffsets' cannot be set"):
        archive(None, options, tmp_path, dry_run=True)


def test_data_loss_fails_a_run_unless_allowed(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    options = options_of(broker, topic)
    archive(spark, options, tmp_path)
    fill(broker.bootstrap, topic, 10)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 15})
    with pytest.raises(ArchiveError, match=r"has offsets 15 to 20, but is archived up to 10"):
        archive(spark, options, tmp_path)
    run = archive(spark, {**options, "failOnDataLoss": "false"}, tmp_path)
    assert run.ranges == ((topic, 0, 15, 20),)


def test_a_dry_run_prints_its_ranges_and_writes_nothing(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 10)
    target = tmp_path / "archive"
    arguments = ["jobs", "archive", str(target), "-b", broker.bootstrap, "-t", topic, "--dry-run", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ranges"] == [{"topic": topic, "partition": 0, "low": 0, "high": 10}]
    assert not target.exists()


@pytest.mark.long
def test_the_next_run_completes_a_killed_command(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 50)
    kill = (
        "import os, signal\n"
        "from pyspark_barnabas.jobs.archive import job\n"
        "job.verified = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from barnabas.cli.main import main; main()"
    )
    arguments = [
        "jobs",
        "archive",
        str(tmp_path),
        "-b",
        broker.bootstrap,
        "-t",
        topic,
        "--master",
        "local[1]",
    ]
    ended = subprocess.run(
        [sys.executable, "-c", kill, *arguments],
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert ArchiveTarget(tmp_path).runs() == []
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert topic in result.stdout
    assert frame_rows(archived(spark, tmp_path)) == consumed_rows(broker.bootstrap, topic)
