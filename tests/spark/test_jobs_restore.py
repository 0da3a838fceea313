"""The job `restore`: everything at its original offset, even if runs die."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.restore import job
from pyspark_barnabas.jobs.restore.job import restore
from pyspark_barnabas.jobs.restore.plan import Request, RestoreError
from support.confluent_transactions import transact
from support.source_rows import SourceRow, consumed_rows, fill
from support.spark import worker_environment

#: Ends the process when one of the partitions has been imported.
KILL_BETWEEN = """
import os, signal
from pyspark_barnabas.jobs.restore import job as restore
hand_over = restore._import
restore._import = lambda *place: (hand_over(*place), os.kill(os.getpid(), signal.SIGKILL))
"""


class Killed(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


def options_of(broker: EmbeddedBroker, *topics: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": ",".join(topics)}


def bounds(broker: EmbeddedBroker, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Return start and end offset of each partition."""
    found = []
    for index in range(partitions):
        tp = TopicPartition(topic, index)
        listed = [broker.client.admin.list_offsets({tp: spec})[tp] for spec in (EARLIEST, LATEST)]
        first, end = (each.offset for each in listed if isinstance(each, ListedOffset))
        found.append((first, end))
    return found


def rows(broker: EmbeddedBroker, topic: str, name: str = "") -> list[SourceRow]:
    """Return a confluent-kafka consumer's committed records, under another topic name."""
    found = consumed_rows(broker.bootstrap, topic, committed=True)
    return [row._replace(topic=name or topic) for row in found]


def command(archive_of: Path, *arguments: str, prelude: str) -> subprocess.CompletedProcess[str]:
    program = f"{prelude}\nfrom barnabas.cli.main import main; main()"
    return subprocess.run(
        [
            sys.executable,
            "-c",
            program,
            "jobs",
            "restore",
            str(archive_of),
            "--master",
            "local[1]",
            *arguments,
        ],
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_an_archive_is_restored_with_offsets_timestamps_and_gaps(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, names: Iterator[str], tmp_path: Path
) -> None:
    stamped = next(names)
    broker.create_topic(topic, 4)
    broker.create_topic(stamped, 1, {"message.timestamp.type": "LogAppendTime"})
    fill(broker.bootstrap, topic, 300, 2)  # two partitions stay empty
    fill(broker.bootstrap, stamped, 50)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 40, TopicPartition(stamped, 0): 50})
    archive(spark, options_of(broker, topic, stamped), tmp_path)
    for each in (topic, stamped):
        transact(broker, each, each, "cacc")  # markers are gaps, including those at the ends
        fill(broker.bootstrap, each, 20)
    transact(broker, topic, topic, "ca")
    archive(spark, options_of(broker, topic, stamped), tmp_path)
    for each, partitions in ((topic, 4), (stamped, 1)):
        name = f"{each}-again"
        done = restore(spark, Request(options_of(broker), tmp_path, [each], name))
        assert done.created == (name,)
        assert rows(broker, name, each) == rows(broker, each)
        assert bounds(broker, name, partitions) == bounds(broker, each, partitions)
        again = restore(spark, Request(options_of(broker), tmp_path, [each], name))
        assert all(part.is_there or part.end == 0 for part in again.parts)
        ends = bounds(broker, name, partitions)
        fill(broker.bootstrap, name, 1)
        assert bounds(broker, name, partitions)[0] == (ends[0][0], ends[0][1] + 1)
        with pytest.raises(RestoreError, match="never had a record"):
            restore(None, Request(options_of(broker), tmp_path, [each], name), dry_run=True)


@pytest.mark.long
def test_a_killed_run_leaves_each_partition_empty_or_complete_and_is_continued(
    spark: SparkSession,
    broker: EmbeddedBroker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 100, 2)
    archive(spark, options_of(broker, topic), tmp_path)
    name = f"{topic}-again"
    request = Request(options_of(broker), tmp_path, [topic], name)

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(job, "_import", die)
        with pytest.raises(Killed):
            restore(spark, request)
    assert bounds(broker, name, 2) == [(0, 0), (0, 0)]
    ended = command(tmp_path, "-b", broker.bootstrap, "-t", topic, "--as", name, prelude=KILL_BETWEEN)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert sorted(bounds(broker, name, 2)) == [(0, 0), (0, 50)]
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    arguments = [
        "jobs",
        "restore",
        str(tmp_path),
        "-b",
        broker.bootstrap,
        "-t",
        topic,
        "--as",
        name,
        "--json",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert sorted(part["is_there"] for part in json.loads(result.stdout)["partitions"]) == [False, True]
    assert rows(broker, name, topic) == rows(broker, topic)
    assert list(broker.directory.glob(f"{name}-*/restored*")) == []


def test_records_that_differ_from_the_archive_are_found(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    archive(spark, options_of(broker, topic), tmp_path)
    name = f"{topic}-again"
    broker.create_topic(name)
    for number in range(10):
        broker.produce(name, f"{number}", partition=0)
    with pytest.raises(RestoreError, match="differs between the archive and the topic"):
        restore(spark, Request(options_of(broker), tmp_path, [topic], name))


def test_a_dry_run_prints_its_ranges_and_creates_nothing(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 10)
    archive(spark, options_of(broker, topic), tmp_path)
    name = f"{topic}-again"
    arguments = ["jobs", "restore", str(tmp_path), "-b", broker.bootstrap, "-t", topic, "--as", name]
    result = CliRunner().invoke(app, [*arguments, "--dry-run", "--json"])
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["created"] == [name]
    assert [(part["start"], part["end"], part["records_count"]) for part in plan["partitions"]] == [
        (0, 10, 10),
        (0, 0, 0),
    ]
    assert name not in broker.topics()
    broker.create_topic(name, 3)
    result = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert result.exit_code == 2
    assert "has 3 partitions, but 2 are archived" in result.stderr
    result = CliRunner().invoke(app, ["jobs", "restore", str(tmp_path), "-t", "other", "--dry-run"])
    assert "the archive does not contain topic 'other'" in result.stderr
