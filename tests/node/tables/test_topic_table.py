"""A table has each record of its topic exactly once, whatever the topic goes through."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.blocking import BlockingClient
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.settings import Decoding, TableFormat
from barnabas.testing import EmbeddedBroker
from support.changing_topics import CONFIGS, STEPS, Step, Topic, some
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill
from support.tables import (
    FORMAT_IDS,
    FORMATS,
    advance,
    arrow_table,
    expected_row,
    iceberg_table,
    plain_row,
    settings_of,
    table_rows,
    topic_source,
    topic_table,
)

each_format = pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
SMALL = {"internal.segment.bytes": "2000", "message.timestamp.type": "CreateTime"}


def offsets(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["kafka_partition"], row["kafka_offset"]) for row in rows]


@some
@given(st.sampled_from(FORMATS), CONFIGS, STEPS)
@example(
    TableFormat.DELTA,
    SMALL,
    [("fill", "lz4", 40, 2), ("transact", "cac"), ("fill", "none", 40, 1), ("compact",)],
)
@example(
    TableFormat.ICEBERG, SMALL, [("fill", "zstd", 9, 2), ("grow",), ("transact", "aac"), ("delete", 0, 0.5)]
)
def test_the_rows_are_those_that_a_consumer_reads(
    broker: EmbeddedBroker,
    new_name: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
    kind: TableFormat,
    configs: dict[str, str],
    steps: list[Step],
) -> None:
    """The table advances after each step, so it also has records that were deleted or compacted later."""
    topic = Topic(broker.bootstrap, broker.directory, new_name(), configs)
    settings = settings_of(topic.name, kind, tmp_path_factory.mktemp("tables") / "table")
    table = topic_table(settings)
    expected: dict[tuple[int, int], dict[str, Any]] = {}
    for step in steps:
        topic.apply(step)
        for row in topic.rows(committed=True):
            expected[row.partition, row.offset] = expected_row(row)
        advance(table, broker.bootstrap)
    if not expected:
        return
    found = {(row["kafka_partition"], row["kafka_offset"]): plain_row(row) for row in table_rows(settings)}
    assert {key: found[key] for key in expected if key in found} == {
        key: row for key, row in expected.items() if key in found
    }
    missing = expected.keys() - found.keys()
    assert missing <= {(row.partition, row.offset) for row in topic.deleted}, (
        "only what was gone before it was read"
    )
    assert len(table_rows(settings)) == len(found), "no record is there twice"


@each_format
def test_all_tools_read_the_rows_that_a_consumer_reads(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    fill(broker.bootstrap, topic, 300, 2)
    transact(broker, topic, topic, "cac")
    settings = settings_of(topic, kind, tmp_path / "table")
    advance(topic_table(settings), broker.bootstrap)
    expected = [expected_row(row) for row in consumed_rows(broker.bootstrap, topic, committed=True)]
    arrow = arrow_table(settings)
    assert [plain_row(row) for row in table_rows(settings)] == expected

    metadata = str(tmp_path / "table")
    lazy = pl.scan_delta(metadata)
    if kind is TableFormat.ICEBERG:
        lazy = pl.scan_iceberg(iceberg_table(settings).metadata_location)
    in_polars = lazy.sort("kafka_partition", "kafka_offset").collect().to_dicts()
    assert [plain_row(row) for row in in_polars] == expected

    duck = duckdb.sql("SELECT * FROM arrow ORDER BY kafka_partition, kafka_offset").to_arrow_table()
    assert [plain_row(row) for row in duck.to_pylist()] == expected
    assert len(arrow) == len(expected)


@each_format
def test_a_new_object_continues_where_the_table_ends(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    for number in range(3):
        broker.produce(topic, f"{number}", partition=0)
        advance(topic_table(settings), broker.bootstrap)
    assert [row["value"] for row in table_rows(settings)] == [b"0", b"1", b"2"]


@each_format
def test_of_two_services_one_commits_and_the_other_continues_after_it(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    broker.produce(topic, "0", partition=0)
    first, second = topic_table(settings), topic_table(settings)
    advance(first, broker.bootstrap)
    advance(second, broker.bootstrap)
    broker.produce(topic, "1", partition=0)
    with topic_source(broker.bootstrap) as source:
        original = source.bounds

        def bounds_after_the_other(partitions: Any) -> Any:
            source.bounds = original  # type: ignore[method-assign]
            first.advance(source)
            return original(partitions)

        source.bounds = bounds_after_the_other  # type: ignore[method-assign]
        with pytest.raises(ConcurrentCommit):
            second.advance(source)
        broker.produce(topic, "2", partition=0)
        assert second.advance(source)
    assert [row["value"] for row in table_rows(settings)] == [b"0", b"1", b"2"]


@each_format
def test_aborted_transactions_advance_no_version(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    broker.produce(topic, "0", partition=0)
    table = topic_table(settings)
    advance(table, broker.bootstrap)
    transact(broker, topic, topic, "a")
    advance(table, broker.bootstrap)
    assert table.counts.commits_count == 1
    broker.produce(topic, "1", partition=0)
    advance(table, broker.bootstrap)
    assert [row["value"] for row in table_rows(settings)] == [b"0", b"1"]


@each_format
def test_the_table_of_an_earlier_topic_is_not_continued(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    broker.produce(topic, "old", partition=0)
    table = topic_table(settings)
    advance(table, broker.bootstrap)
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    broker.produce(topic, "new", partition=0)
    with pytest.raises(TableError, match="the topic was deleted and created again"):
        advance(table, broker.bootstrap)
    assert [row["value"] for row in table_rows(settings)] == [b"old"]


@each_format
def test_records_that_were_gone_before_they_were_read_are_counted(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    table = topic_table(settings)
    for number in range(6):
        broker.produce(topic, f"{number}", partition=0)
        if number == 0:
            advance(table, broker.bootstrap)
    with BlockingClient(broker.bootstrap) as client:
        client.admin.delete_records({TopicPartition(topic, 0): 4})
    advance(table, broker.bootstrap)
    assert [row["kafka_offset"] for row in table_rows(settings)] == [0, 4, 5]
    assert table.counts.lost_records_count == 3


@each_format
def test_lost_records_are_counted_once(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    """Also if the partition stays empty, so that no commit moves the table's offset."""
    table = topic_table(settings_of(topic, kind, tmp_path / "table"))
    broker.produce(topic, "0", partition=0)
    advance(table, broker.bootstrap)
    for number in (1, 2):
        broker.produce(topic, f"{number}", partition=0)
    with BlockingClient(broker.bootstrap) as client:
        client.admin.delete_records({TopicPartition(topic, 0): 3})
    for _ in range(3):
        advance(table, broker.bootstrap)
    assert table.counts.lost_records_count == 2


def test_offsets_without_rows_are_read_again_after_a_truncation(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """An unclean election may cut off an aborted transaction; other records get its offsets."""
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "table")
    table = topic_table(settings)
    broker.produce(topic, "0", partition=0)
    advance(table, broker.bootstrap)
    table._empty_up_to = {0: 9}
    advance(table, broker.bootstrap)
    for number in range(1, 12):
        broker.produce(topic, f"{number}", partition=0)
    advance(table, broker.bootstrap)
    assert [row["kafka_offset"] for row in table_rows(settings)] == list(range(12))


@pytest.mark.parametrize("name", ["with spaces", "größe", "a+b"])
@each_format
def test_directories_may_have_any_usual_name(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat, name: str
) -> None:
    settings = settings_of(topic, kind, tmp_path / name / "table")
    table = topic_table(settings)
    for number in range(8):
        broker.produce(topic, f"{number}", partition=0)
        advance(table, broker.bootstrap)
        table.maintain()
    assert table.counts.joined_files_count == 8
    assert len(table_rows(settings)) == 8
    assert table.counts.deleted_files_count == 0


def test_a_table_that_was_removed_is_made_again(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    """Without a restart of the service: this is how a table with other settings is made."""
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "table")
    table = topic_table(settings)
    broker.produce(topic, "0", partition=0)
    advance(table, broker.bootstrap)
    shutil.rmtree(tmp_path / "table")
    with pytest.raises(Exception, match="File not found"):
        advance(table, broker.bootstrap)
    advance(table, broker.bootstrap)
    assert [row["value"] for row in table_rows(settings)] == [b"0"]


@each_format
def test_a_topic_may_get_partitions(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "table")
    table = topic_table(settings)
    broker.produce(topic, "0", partition=0)
    advance(table, broker.bootstrap)
    with BlockingClient(broker.bootstrap) as client:
        raise_errors(client.admin.create_partitions({topic: 3}).values())
    fill(broker.bootstrap, topic, 6, 3)
    advance(table, broker.bootstrap)
    assert offsets(table_rows(settings)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)]


@each_format
def test_text_that_is_not_utf_8_keeps_its_bytes(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(
        topic, kind, tmp_path / "table", key_decoding=Decoding.STRING, value_decoding=Decoding.STRING
    )
    for key, value in ((b"k", b"good"), (b"\xff", b"good, too"), (None, None), (b"k", b"\xff\xfe")):
        broker.produce(topic, value, key=key, partition=0)
    advance(topic_table(settings), broker.bootstrap)
    rows = table_rows(settings)
    assert [(row["kafka_key"], row["value"]) for row in rows] == [
        ("k", "good"),
        (None, "good, too"),
        (None, None),
        ("k", None),
    ]
    assert [row["kafka_error"] for row in rows] == [
        None,
        "key: it is not UTF-8",
        None,
        "value: it is not UTF-8",
    ]
    assert [(row["kafka_raw_key"], row["kafka_raw_value"]) for row in rows] == [
        (None, None),
        (b"\xff", b"good, too"),
        (None, None),
        (b"k", b"\xff\xfe"),
    ]


@each_format
def test_changed_settings_apply_to_later_records(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    """A column keeps its type, so values of another type keep their bytes, and say why."""
    location = tmp_path / "table"
    broker.produce(topic, "0", partition=0)
    advance(topic_table(settings_of(topic, kind, location)), broker.bootstrap)
    broker.produce(topic, "1", key="k", partition=0)
    as_text = settings_of(topic, kind, location, key_decoding=Decoding.STRING)
    advance(topic_table(as_text), broker.bootstrap)
    first, second = table_rows(as_text)
    assert (first["value"], first["kafka_error"], second["value"]) == (b"0", None, b"1")
    assert (second["kafka_key"], second["kafka_raw_key"]) == (None, b"k")
    assert second["kafka_error"] == "kafka_key is string; the table's column is binary"


@each_format
def test_a_timestamp_that_no_column_can_hold_does_not_stop_the_table(
    broker: EmbeddedBroker, new_name: Callable[[], str], tmp_path: Path, kind: TableFormat
) -> None:
    """As of producers that write nanoseconds. Brokers before Kafka 4.0 accept them by default."""
    topic = new_name()
    broker.create_topic(topic, configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
    for number, timestamp_ms in enumerate((1_700_000_000_000, 1_700_000_000_000_000_000, 1_700_000_000_001)):
        broker.produce(topic, str(number), timestamp_ms=timestamp_ms)
    settings = settings_of(topic, kind, tmp_path / "table")
    advance(topic_table(settings), broker.bootstrap)
    rows = table_rows(settings)
    assert [row["value"] for row in rows] == [b"0", b"1", b"2"]
    assert [row["kafka_timestamp"] is None for row in rows] == [False, True, False]
    says = "timestamp: microseconds cannot hold it"
    assert [row["kafka_error"] for row in rows] == [None, says, None]


def test_a_partition_with_a_backlog_does_not_delay_the_others(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.tables.topic_table._COMMIT_BYTES_MAX", 300_000)
    for _ in range(20):
        broker.produce(topic, "x" * 100_000, partition=0)
    broker.produce(topic, "y", partition=1)
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "table")
    table = topic_table(settings)
    with topic_source(broker.bootstrap, fetch_bytes=400_000) as source:
        for _ in range(3):  # the first pass creates the table
            assert not table.advance(source)
        found = offsets(table_rows(settings))
        assert (1, 0) in found
        assert (0, 19) not in found
        while not table.advance(source):
            pass
    assert len(table_rows(settings)) == 21


def test_a_large_backlog_takes_several_commits(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.tables.topic_table._COMMIT_BYTES_MAX", 300_000)
    for _ in range(40):
        broker.produce(topic, "x" * 100_000, partition=0)
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "table")
    table = topic_table(settings)
    with topic_source(broker.bootstrap, fetch_bytes=1_000_000) as source:
        assert not table.advance(source)
        while not table.advance(source):
            pass
    assert table.counts.commits_count > 1
    assert pa.compute.sum(arrow_table(settings)["kafka_offset"]).as_py() == sum(range(40))
