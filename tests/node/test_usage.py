"""Usage: its counts equal a consumer's and are in the report; a dry run writes nothing."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.reports.usage import measuring
from barnabas.reports.usage.html import usage_html
from barnabas.reports.usage.key_counts import KeyCounts
from barnabas.reports.usage.measuring import Usage, usage
from barnabas.reports.usage.statistics import format_key
from barnabas.testing import EmbeddedBroker
from support import moved_replicas
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill, producer

BROKER_SETTINGS = {"log.retention.ms": "-1", "transaction.state.log.num.partitions": "2"}
DAY_MS = 86_400_000
BEGIN_MS = 1_767_225_600_000  # 2026-01-01


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(BROKER_SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"usage-{number}" for number in range(1_000_000))


@pytest.fixture
def topic(names: Iterator[str]) -> str:
    """Return the name of a topic that does not exist yet."""
    return next(names)


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
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, 4)
    fill_days(broker.bootstrap, topic)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    found = usage(options, keys_count=2)
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
    broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, topic, "ca")
    fill(broker.bootstrap, topic, 10)
    found = usage({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}, keys_count=0)
    stored = len(consumed_rows(broker.bootstrap, topic))
    assert found.partitions[0].records_count == stored
    assert found.keys == ()


def test_the_command_writes_a_report_and_a_dry_run_none(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
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
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert [each["records_count"] for each in json.loads(done.stdout)["partitions"]] == [5, 5]
    assert topic in (tmp_path / "r" / "report.html").read_text()


def test_the_planned_moves_balance_the_directories(topic: str, tmp_path: Path) -> None:
    with moved_replicas.two_directories(tmp_path) as broker:
        broker.create_topic(topic, len(moved_replicas.RECORDS_COUNTS))
        moved_replicas.fill(broker.bootstrap, topic)
        rows, before = consumed_rows(broker.bootstrap, topic), moved_replicas.homes(broker.bootstrap, topic)
        plan = moved_replicas.planned(broker.bootstrap, topic, tmp_path / "first")
        assert plan is not None
        moved_replicas.carry_out(broker.bootstrap, plan)
        assert moved_replicas.homes(broker.bootstrap, topic) == {**before, **plan.targets}
        assert before != {**before, **plan.targets}
        assert consumed_rows(broker.bootstrap, topic) == rows
        assert moved_replicas.planned(broker.bootstrap, topic, tmp_path / "then") is None


@pytest.mark.parametrize("transport", ["fetch", "files"])
def test_a_part_of_the_offsets_is_measured_over_both_transports(
    broker: EmbeddedBroker, topic: str, transport: str
) -> None:
    broker.create_topic(topic)
    for _ in range(3):
        fill(broker.bootstrap, topic, 20, keyed=True, compression_type="zstd")
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 20}}),
        "endingOffsets": json.dumps({topic: {"0": 60}}),
        "transport": transport,
        "logDirs": str(broker.directory),
    }
    found = usage(options, keys_count=3)
    rows = [row for row in consumed_rows(broker.bootstrap, topic) if row.offset >= 20]
    assert found.ranges == ((topic, 0, 20, 60),)
    assert found.partitions[0].records_count == len(rows) == 40
    expected = Counter(row.key for row in rows if row.key is not None)
    assert [(key.key, key.records_count) for key in found.keys] == [
        (format_key(key), count)
        for key, count in sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:3]
    ]


def test_keys_that_do_not_fit_into_memory_are_counted_in_two_passes(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic, 2)
    writer = producer(broker.bootstrap, linger_ms=0, batch_size=2_000)
    for number in range(6_000):
        key = f"busy {number % 3}" if number % 10 < 2 else f"rare {number}"
        writer.produce(topic, b"", key, number % 2)
    assert writer.flush(20) == 0
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "kafka.max.partition.fetch.bytes": "20000",
    }
    expected = usage(options, keys_count=3).keys
    small = partial(KeyCounts, kept_bytes_max=5_000, waiting_rows_max=100)
    monkeypatch.setattr(measuring, "KeyCounts", small)
    assert usage(options, keys_count=3).keys == expected
    assert [(key.partition, key.key, key.records_count) for key in expected] == [
        (partition, f"busy {number}", 200) for partition in (0, 1) for number in range(3)
    ]
