"""The job `usage`: its counts equal a consumer's and are in the report; a dry run writes nothing."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.usage.job import Usage, usage
from pyspark_barnabas.jobs.usage.report import usage_html
from support import moved_replicas
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill, producer

DAY_MS = 86_400_000
BEGIN_MS = 1_767_225_600_000  # 2026-01-01


def fill_days(bootstrap: str, topic: str) -> None:
    """Write three days; on the last, partition 1 gets most records, nearly all with one key."""
    for day in range(3):
        writer = producer(bootstrap)
        for number in range(120):
            busy = day == 2 and number % 10
            key = "busy" if busy else f"key {number}"
            partition = 1 if busy else number % 3
            writer.produce(topic, "v" * 50, key, partition, timestamp=BEGIN_MS + day * DAY_MS + number)
        assert writer.flush(20) == 0


def test_counts_days_and_keys_equal_those_of_a_consumer(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 4)
    fill_days(broker.bootstrap, topic)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    found = usage(spark, options, keys_count=2)
    rows = consumed_rows(broker.bootstrap, topic)
    by_day = Counter((row.partition, row.timestamp // DAY_MS) for row in rows)
    assert {(each.partition, each.date): each.records_count for each in found.days} == {
        (partition, f"2026-01-0{day - BEGIN_MS // DAY_MS + 1}"): count
        for (partition, day), count in by_day.items()
    }
    assert [each.records_count for each in found.partitions] == [
        sum(row.partition == index for row in rows) for index in range(4)
    ]
    [measured] = found.topics
    assert measured.hot_partitions == (1,)
    assert measured.records_count == len(rows) == 360
    log_bytes = sum(
        replica.size_bytes
        for node in broker.client.cluster.metadata.nodes
        for each in broker.client.admin.describe_log_dirs(node)
        for tp, replica in each.replicas.items()
        if tp.topic == topic
    )
    assert measured.size_bytes == log_bytes
    keys = Counter((row.partition, row.key) for row in rows)
    for each in found.keys:
        assert each.records_count == keys[each.partition, each.key.encode()]
    assert [len([each for each in found.keys if each.partition == index]) for index in range(4)] == [
        2,
        2,
        2,
        0,
    ]
    heaviest = max(found.keys, key=lambda each: each.records_count)
    assert (heaviest.partition, heaviest.key, heaviest.records_count) == (1, "busy", 108)
    assert "'busy' has 30% of all records" in found.advice[0]
    check_saved(found, tmp_path)


def check_saved(found: Usage, directory: Path) -> None:
    found.save(directory)
    assert pq.read_table(directory / "keys.parquet").num_rows == len(found.keys)
    assert pq.read_table(directory / "days.parquet").to_pylist() == [each._asdict() for each in found.days]
    assert pq.read_table(directory / "partitions.parquet").num_rows == len(found.partitions)
    assert pq.read_table(directory / "topics.parquet")["hot_partitions"].to_pylist() == [[1]]
    assert not (directory / "reassignment.json").exists(), "there is but one place for replicas"
    document = usage_html(found, "here")
    assert found.topics[0].topic in document
    assert document.count("<svg") == 4


def test_markers_count_as_bytes_but_not_records_and_keys_are_read_only_on_request(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, topic, "ca")
    fill(broker.bootstrap, topic, 10)
    found = usage(spark, {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}, keys_count=0)
    stored = len(consumed_rows(broker.bootstrap, topic))
    assert found.partitions[0].records_count == stored
    assert found.keys == ()


def test_the_command_writes_a_report_and_a_dry_run_none(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 10, 2)
    arguments = [
        "jobs",
        "usage",
        "-b",
        broker.bootstrap,
        "-t",
        topic,
        "--json",
        "--report",
        str(tmp_path / "r"),
    ]
    dry = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert [each["high"] for each in json.loads(dry.stdout)["ranges"]] == [5, 5]
    assert not (tmp_path / "r").exists()


def test_the_planned_moves_balance_the_directories(
    spark: SparkSession, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moved_replicas.two_directories(tmp_path) as broker:
        broker.create_topic(topic, len(moved_replicas.RECORDS_COUNTS))
        moved_replicas.fill(broker.bootstrap, topic)
        rows, before = consumed_rows(broker.bootstrap, topic), moved_replicas.homes(broker.bootstrap, topic)
        plan = moved_replicas.planned(spark, broker.bootstrap, topic, tmp_path / "first", monkeypatch)
        assert plan is not None
        moved_replicas.carry_out(broker.bootstrap, plan)
        assert moved_replicas.homes(broker.bootstrap, topic) == {**before, **plan.targets}
        assert before != {**before, **plan.targets}
        assert consumed_rows(broker.bootstrap, topic) == rows
        assert moved_replicas.planned(spark, broker.bootstrap, topic, tmp_path / "then", monkeypatch) is None
