"""The job `scrub` on a broker's files, and as a command."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from barnabas.wire.records.batch import iterate_headers
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.scrub.job import scrub
from support.confluent_transactions import transact
from support.source_rows import fill


def options_of(broker: EmbeddedBroker, *topics: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": ",".join(topics),
        "logDirs": str(broker.directory),
    }


def filled(broker: EmbeddedBroker, topic: str) -> None:
    """Write plain, idempotent and transactional batches in many segments."""
    broker.create_topic(topic, 2, {"segment.index.bytes": "80", "index.interval.bytes": "1000"})
    fill(broker.bootstrap, topic, 2_000, 2, batch_size=1_000)
    fill(broker.bootstrap, topic, 500, 2, enable_idempotence=True, batch_size=1_000)
    transact(broker, topic, f"{topic}-transactions", "caca")


def test_intact_logs_of_a_running_broker_pass_and_damage_is_reported(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, names: Iterator[str], tmp_path: Path
) -> None:
    other = next(names)
    for each in (topic, other):
        filled(broker, each)
    report = scrub(spark, options_of(broker, topic, other))
    assert report.findings == []
    assert [(each.topic, each.partition) for each in report.partitions] == sorted(
        TopicPartition(each, index) for each in (topic, other) for index in (0, 1)
    )
    assert all(each.records_count == each.next_offset for each in report.partitions)
    assert sum(each.records_count for each in report.partitions if each.topic == topic) >= 2_500 + 40 + 4
    assert all(each.segments_count > 1 for each in report.partitions)

    path = sorted((broker.directory / f"{topic}-1").glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    position, header = list(iterate_headers(data))[2]
    data[position + 70] ^= 0x10
    path.write_bytes(data)
    report = scrub(spark, options_of(broker, topic, other))
    [finding] = report.findings
    assert finding[:7] == ("crc", topic, 1, header.base_offset, header.last_offset, str(path), position)
    report.save(tmp_path / "report")
    assert pq.read_table(tmp_path / "report/findings.parquet").to_pylist() == [finding._asdict()]
    counts = pq.read_table(tmp_path / "report/partitions.parquet").to_pydict()
    assert sum(counts["findings_count"]) == 1


def test_intact_logs_pass_over_the_wire_and_damage_is_reported(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, names: Iterator[str]
) -> None:
    compacted = next(names)
    broker.create_topic(compacted, 1, {"cleanup.policy": "compact"})
    broker.produce(compacted, "value", "key", partition=0)
    filled(broker, topic)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": f"{topic},{compacted}"}
    report = scrub(spark, options)
    assert report.findings == []
    assert {each.tp.topic for each in report.wanted if each.is_compacted} == {compacted}
    assert sum(each.records_count for each in report.partitions) >= 2_500 + 40 + 4 + 1

    path = max((broker.directory / f"{topic}-1").glob("*.log"))
    data = bytearray(path.read_bytes())
    position, header = list(iterate_headers(data))[1]
    data[position + 70] ^= 0x10
    path.write_bytes(data)
    [finding] = scrub(spark, options).findings
    assert finding[:7] == ("crc", topic, 1, header.base_offset, header.last_offset, "", -1)


@pytest.mark.usefixtures("spark")
def test_a_dry_run_prints_its_ranges_and_writes_nothing(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 10, 2)
    arguments = ["--log-dir", str(broker.directory), "-b", broker.bootstrap, "-t", topic]
    report = tmp_path / "report"
    result = CliRunner().invoke(
        app, ["jobs", "scrub", *arguments, "--report", str(report), "--dry-run", "--json"]
    )
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert [(each["topic"], each["partition"], each["end"]) for each in plan["reads"]] == [
        (topic, 0, 5),
        (topic, 1, 5),
    ]
    assert plan["writes"] == str(report)
    assert not report.exists()


def test_damage_is_exit_code_1(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "intact", partition=0)
    [path] = (broker.directory / f"{topic}-0").glob("*.log")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"intact", b"INTACT"))
    arguments = ["jobs", "scrub", "-d", str(broker.directory), "-b", broker.bootstrap, "-t", topic]
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == 1, ended.output
    [partition] = json.loads(ended.stdout)["partitions"]
    [finding] = partition["findings"]
    assert (finding["kind"], finding["file"], finding["position"]) == ("crc", str(path), 0)
