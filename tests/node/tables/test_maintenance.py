"""Tables stay small and fast: files are joined, old rows, versions and files are deleted, and nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.objects.opening import open_store
from barnabas.tables.building import new_name
from barnabas.tables.data_files import new_data_path
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.maintenance import TableMaintenance
from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.tables.table import StoredTable
from barnabas.tables.topic_table import TopicTable
from barnabas.testing import EmbeddedBroker
from support.tables import (
    FORMAT_IDS,
    FORMATS,
    advance,
    iceberg_table,
    settings_of,
    table_rows,
    topic_table,
)

each_format = pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


def opened(table: TopicTable) -> StoredTable:
    """Return the table that the object keeps."""
    assert table._table is not None
    return table._table


def maintenance(table: TopicTable) -> TableMaintenance:
    return TableMaintenance(opened(table), open_store(table.settings.location), table.settings, new_name)


def fill_table(broker: EmbeddedBroker, settings: TableSettings, count: int, table: TopicTable) -> None:
    """Commit records one by one, each an hour later than the one before."""
    for number in range(count):
        broker.produce(settings.topic, f"{number}", partition=0, timestamp_ms=START_MS + number * HOUR_MS)
        advance(table, broker.bootstrap)


def values(settings: TableSettings) -> list[bytes]:
    return [row["value"] for row in table_rows(settings)]


def numbers(*found: int) -> list[bytes]:
    return [str(number).encode() for number in found]


@each_format
def test_small_files_are_joined_after_some_commits(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t")
    table = topic_table(settings)
    for number in range(17):
        broker.produce(topic, f"{number}", partition=0)
        advance(table, broker.bootstrap)
        table.maintain()
    assert table.counts.joined_files_count == 17
    assert len(opened(table).files()) < 9
    assert values(settings) == numbers(*range(17))


@each_format
def test_rows_beyond_the_retention_are_deleted_exactly(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    """Whole files are removed, and one with later rows, too, is written again."""
    settings = settings_of(topic, kind, tmp_path / "t", retention_ms=3 * HOUR_MS)
    table = topic_table(settings)
    fill_table(broker, settings, 10, table)
    assert maintenance(table).join_files() == 10
    for number in (10, 11):
        broker.produce(topic, f"{number}", partition=0, timestamp_ms=START_MS + number * HOUR_MS)
        advance(table, broker.bootstrap)
    expired = maintenance(table).expire(START_MS + 11 * HOUR_MS)
    assert expired.deleted_rows_count == 8
    assert values(settings) == numbers(8, 9, 10, 11)
    assert maintenance(table).expire(START_MS + 11 * HOUR_MS).deleted_rows_count == 0
    broker.produce(topic, "12", partition=0, timestamp_ms=START_MS + 12 * HOUR_MS)
    advance(table, broker.bootstrap)
    assert values(settings) == numbers(8, 9, 10, 11, 12)


@each_format
def test_timestamps_beyond_the_calendar_are_kept_and_not_written_again(
    tmp_path: Path, kind: TableFormat
) -> None:
    """As from a producer that took microseconds for milliseconds. No statistics have them."""
    topic = "microseconds"
    settings = settings_of(topic, kind, tmp_path / "t")
    table = topic_table(settings)
    with EmbeddedBroker({"log.message.timestamp.after.max.ms": str(2**63 - 1)}) as permissive:
        permissive.create_topic(topic, 1)
        for timestamp_ms in (START_MS * 1000, START_MS):
            permissive.produce(topic, f"{timestamp_ms}", partition=0, timestamp_ms=timestamp_ms)
            advance(table, permissive.bootstrap)
    assert maintenance(table).delete_before(START_MS + 1) == 1
    version = opened(table).summary().version
    assert maintenance(table).delete_before(START_MS + 2) == 0
    assert opened(table).summary().version == version
    assert [file.rows_count for file in opened(table).files()] == [1]


@each_format
def test_of_two_services_only_one_joins_the_same_files(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t")
    first, second = topic_table(settings), topic_table(settings)
    fill_table(broker, settings, 8, first)
    advance(second, broker.bootstrap)
    assert maintenance(first).join_files() == 8
    with pytest.raises(ConcurrentCommit):
        maintenance(second).join_files()
    assert values(settings) == numbers(*range(8))
    opened(second).refresh()
    assert maintenance(second).join_files() == 0


@each_format
def test_files_of_no_version_are_deleted_when_they_are_old(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t")
    table = topic_table(settings)
    fill_table(broker, settings, 2, table)
    directory = next(tmp_path.rglob("*.parquet")).parent
    old, new = (directory / new_data_path("", new_name) for _ in range(2))
    for path in (old, new):
        path.write_bytes(b"of a commit that failed")
    for path in directory.iterdir():
        if path != new and path.is_file():
            os.utime(path, (1, 1))
    assert opened(table).clean(HOUR_MS) == 1
    assert not old.exists()
    assert new.exists()
    assert values(settings) == numbers(0, 1)


@each_format
def test_files_of_others_at_the_location_are_left_alone(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    """A location may be a directory that is in use already, and has tables of other topics below it."""
    location = tmp_path / "t"
    others = [location / name for name in ("notes.txt", "mine/1.parquet", "orders/part-1.zstd.parquet")]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
        os.utime(path, (1, 1))
    table = topic_table(settings_of(topic, kind, location))
    fill_table(broker, table.settings, 1, table)
    assert opened(table).clean(HOUR_MS) == 0
    assert [path.read_bytes() for path in others] == [b"mine"] * 3


def test_statistics_that_other_tools_made_are_kept(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    from pyiceberg.table.statistics import StatisticsFile

    settings = settings_of(topic, TableFormat.ICEBERG, tmp_path / "t")
    table = topic_table(settings)
    fill_table(broker, settings, 1, table)
    path = tmp_path / "t/metadata/1.stats"
    path.write_bytes(b"of Spark")
    os.utime(path, (1, 1))
    stored = iceberg_table(settings)
    with stored.update_statistics() as update:
        update.set_statistics(
            StatisticsFile.model_validate(
                {
                    "snapshot-id": stored.current_snapshot().snapshot_id,
                    "statistics-path": f"{stored.location()}/metadata/1.stats",
                    "file-size-in-bytes": 8,
                    "file-footer-size-in-bytes": 0,
                    "blob-metadata": [],
                }
            )
        )
    opened(table).refresh()
    assert opened(table).clean(HOUR_MS) == 0
    assert path.exists()


def test_a_renamed_table_keeps_its_files(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    """The table of the next topic of the name does not share its location, because it would clean up there."""
    settings = settings_of(topic, TableFormat.ICEBERG, tmp_path / "t")
    fill_table(broker, settings, 1, topic_table(settings))
    stored = iceberg_table(settings)
    stored.catalog.rename_table(stored.name(), ("topics", "renamed"))
    broker.delete_topic(topic)
    broker.create_topic(topic, 1)
    broker.produce(topic, "new", partition=0)
    with pytest.raises(TableError, match="has files of another Iceberg table"):
        advance(topic_table(settings), broker.bootstrap)
    moved = settings_of(topic, TableFormat.ICEBERG, tmp_path / "t2")
    advance(topic_table(moved), broker.bootstrap)
    assert values(moved) == [b"new"]


def test_a_file_is_joined_one_row_group_at_a_time(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large records take little space in a file if they compress well, and much in memory."""
    monkeypatch.setattr("barnabas.tables.data_files._ROW_GROUP_BYTES", 1)
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "t")
    table = topic_table(settings)
    fill_table(broker, settings, 8, table)
    assert maintenance(table).join_files() == 8
    [file] = opened(table).files()
    batches = [rows.num_rows for rows in maintenance(table)._rows([file])]
    assert batches == [1] * 8


def test_earlier_versions_of_iceberg_are_forgotten_after_their_time(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """The clock is ahead, as it is after some days."""
    settings = settings_of(topic, TableFormat.ICEBERG, tmp_path / "t", history_ms=24 * HOUR_MS)
    fill_table(broker, settings, 8, topic_table(settings))
    clock = ManualClock(4_000_000_000_000)
    table = topic_table(settings, clock=clock)
    advance(table, broker.bootstrap)
    assert maintenance(table).join_files() == 8
    files = set(tmp_path.rglob("*"))
    assert maintenance(table).expire(clock.wall_ms()).deleted_files_count > 8
    assert len(files - set(tmp_path.rglob("*"))) > 8
    assert values(settings) == numbers(*range(8))
    broker.produce(topic, "8", partition=0)
    advance(topic_table(settings), broker.bootstrap)
    assert values(settings) == numbers(*range(9))


def test_the_time_of_an_earlier_version_of_iceberg_begins_when_it_is_replaced(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    settings = settings_of(topic, TableFormat.ICEBERG, tmp_path / "t")
    fill_table(broker, settings, 2, topic_table(settings))
    first, second = iceberg_table(settings).snapshots()
    clock = ManualClock(second.timestamp_ms + HOUR_MS)
    table = topic_table(settings, clock=clock)
    advance(table, broker.bootstrap)
    assert opened(table).clean(HOUR_MS) == 0
    stored = iceberg_table(settings)
    assert stored.scan(snapshot_id=first.snapshot_id).to_arrow()["value"].to_pylist() == numbers(0)
    clock.advance(1)
    assert opened(table).clean(HOUR_MS) > 0
    assert iceberg_table(settings).snapshots() == [second.model_copy(update={"parent_snapshot_id": None})]


def test_a_delta_log_keeps_the_configured_history(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    location = tmp_path / "t"
    settings = settings_of(topic, TableFormat.DELTA, location, history_ms=48 * HOUR_MS)
    fill_table(broker, settings, 1, topic_table(settings))
    assert history(location) == {"interval 48 hours"}
    table = topic_table(settings_of(topic, TableFormat.DELTA, location, history_ms=1))
    advance(table, broker.bootstrap)
    maintenance(table).expire(START_MS)
    assert history(location) == {"interval 1 hours"}
    assert DeltaTable(str(location)).metadata().name == topic


def history(location: Path) -> set[Any]:
    from deltalake import DeltaTable

    configured = DeltaTable(str(location)).metadata().configuration
    return {value for name, value in configured.items() if name.endswith("Duration")}


@each_format
def test_a_table_of_others_is_left_alone(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    settings = settings_of(topic, kind, tmp_path / "t")
    broker.produce(topic, "0", partition=0)
    if kind is TableFormat.DELTA:
        write_deltalake(settings.location, pa.table({"mine": [1]}))
    else:
        advance(topic_table(settings), broker.bootstrap)
        with iceberg_table(settings).transaction() as transaction:
            transaction.remove_properties("barnabas.topic.id")
    with pytest.raises(TableError, match="did not create"):
        advance(topic_table(settings), broker.bootstrap)
