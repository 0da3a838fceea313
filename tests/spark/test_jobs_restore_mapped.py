"""The job `restore` with an offset map: each record once after existing ones, and groups that continue."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.restore import mapped as job
from pyspark_barnabas.jobs.restore.mapped import restore_mapped
from pyspark_barnabas.jobs.restore.offset_map import read_map
from pyspark_barnabas.jobs.restore.plan import Request, RestoreError
from support.confluent_transactions import transact
from support.source_rows import SourceRow, consumed_rows, fill
from support.spark import worker_environment

#: Ends the process when everything is produced but not yet compared with the archive.
KILL = """
import os, signal
from pyspark_barnabas.jobs.restore import mapped as restore_mapped
restore_mapped._BATCH_RECORDS = 60
restore_mapped._write_map = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from barnabas.cli.main import main; main()
"""


def options_of(broker: EmbeddedBroker, *topics: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": ",".join(topics)}


def archived(spark: SparkSession, broker: EmbeddedBroker, topic: str, directory: Path) -> list[SourceRow]:
    """Create a topic with deleted records, aborted ones and an empty partition, archived in two runs."""
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 100, 2)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 10})
    archive(spark, options_of(broker, topic), directory)
    transact(broker, topic, topic, "cac")
    fill(broker.bootstrap, topic, 20, 2)
    archive(spark, options_of(broker, topic), directory)
    return consumed_rows(broker.bootstrap, topic, committed=True)


def contents(rows: list[SourceRow]) -> list[tuple[object, ...]]:
    """Return everything except topic and offset, in the order of each partition."""
    return [(row.partition, *row[3:]) for row in rows]


@pytest.mark.long
def test_records_are_appended_once_and_mapped_even_if_runs_die(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_BATCH_RECORDS", 60)
    expected = archived(spark, broker, topic, tmp_path / "archive")
    name = f"{topic}-again"
    broker.create_topic(name, 3)
    fill(broker.bootstrap, name, 7, 3)
    there_before = consumed_rows(broker.bootstrap, name)
    request = Request(options_of(broker), tmp_path / "archive", [topic], name)
    with pytest.raises(RestoreError, match="already has records"):
        restore_mapped(None, request, tmp_path / "map", dry_run=True)
    arguments = [str(tmp_path / "archive"), "-b", broker.bootstrap, "-t", topic, "--as", name]
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            KILL,
            "jobs",
            "restore",
            *arguments,
            "--map",
            str(tmp_path / "map"),
            "--append",
        ],
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    archive(spark, options_of(broker, topic), tmp_path / "archive")
    restore_mapped(spark, request, tmp_path / "map")
    rows = consumed_rows(broker.bootstrap, name, committed=True)
    new = [row for row in rows if row not in there_before]
    assert contents(new) == contents(expected)
    maps = read_map(tmp_path / "map")
    assert {tp.topic for tp in maps} == {topic}
    for before, after in zip(expected, new, strict=True):
        assert maps[TopicPartition(topic, before.partition)].translated(before.offset) == after.offset
    again = restore_mapped(spark, request, tmp_path / "map")
    assert consumed_rows(broker.bootstrap, name, committed=True) == rows
    assert sum(part.records_count for part in again.parts) == len(expected)


def test_groups_continue_at_mapped_offsets_in_many_transactions(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_BATCH_RECORDS", 30)
    expected = archived(spark, broker, topic, tmp_path / "archive")
    name, group = f"{topic}-again", f"group-of-{topic}"
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    given = [str(tmp_path / "archive"), "-b", broker.bootstrap, "-t", topic, "--as", name]
    result = CliRunner().invoke(app, ["jobs", "restore", *given, "--map", str(tmp_path / "map")])
    assert result.exit_code == 0, result.output
    assert name in result.stdout
    rows = consumed_rows(broker.bootstrap, name, committed=True)
    assert contents(rows) == contents(expected)
    stopped = {TopicPartition(topic, index): offset for index, offset in enumerate((33, 59, 0))}
    stopped[TopicPartition("other", 0)] = 1
    broker.create_topic("other")
    broker.client.groups.commit_offsets(group, stopped)
    arguments = ["jobs", "translate-offsets", str(tmp_path / "map"), "-b", broker.bootstrap, "-g", group]
    for dry in (["--dry-run"], []):
        result = CliRunner().invoke(app, [*arguments, "--json", *dry])
        assert result.exit_code == 0, result.output
        committed = broker.client.groups.offsets(group)
        assert {tp.topic for tp in committed} == {topic, "other", *([] if dry else [name])}
    assert [each["restored_topic"] for each in json.loads(result.stdout)["offsets"]] == [name] * 3
    for index in range(3):
        stop, restored = stopped[TopicPartition(topic, index)], committed[TopicPartition(name, index)].offset
        rest = [row for row in expected if row.partition == index and row.offset >= stop]
        assert contents(
            [row for row in rows if row.partition == index and row.offset >= restored]
        ) == contents(rest)


def test_foreign_records_between_restored_ones_are_found(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(spark, broker, topic, tmp_path / "archive")
    name = f"{topic}-again"
    produce = job._produce

    def disturbed(*args: object) -> None:
        broker.produce(name, "of somebody else", partition=1)
        produce(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "_produce", disturbed)
    request = Request(options_of(broker), tmp_path / "archive", [topic], name)
    with pytest.raises(RestoreError, match="no other producer may write to the topics"):
        restore_mapped(spark, request, tmp_path / "map")
    with pytest.raises(RestoreError, match="continue it or use another directory"):
        restore_mapped(
            None, Request(options_of(broker), tmp_path / "archive", [topic]), tmp_path / "map", dry_run=True
        )
