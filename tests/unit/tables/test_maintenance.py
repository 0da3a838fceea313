"""Which files are joined, and files that Spark has written again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from barnabas.base.clock import ManualClock
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.tables.building import new_name
from barnabas.tables.delta import DeltaTopicTable, create_delta
from barnabas.tables.maintenance import TableMaintenance, files_to_join
from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.tables.table import TableAccess, TableFile, TopicIdentity

KIB, MIB = 1024, 1024 * 1024
TARGET = 128 * MIB
TIME = pa.timestamp("us", "UTC")
FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("until", TIME), ("kafka_timestamp", TIME)])


def files(*sizes: int) -> list[TableFile]:
    return [TableFile(f"{index}", size, 10, index, index) for index, size in enumerate(sizes)]


def sizes_of(groups: list[list[TableFile]]) -> list[list[int]]:
    return [[file.size_bytes for file in group] for group in groups]


def test_few_small_files_are_left_alone() -> None:
    assert files_to_join(files(*[KIB] * 7), TARGET) == []


def test_many_small_files_become_one() -> None:
    assert sizes_of(files_to_join(files(*[KIB] * 9), TARGET)) == [[KIB] * 9]


def test_files_of_the_target_size_are_left_alone() -> None:
    assert files_to_join(files(*[TARGET] * 50), TARGET) == []


def test_only_files_of_one_size_are_joined() -> None:
    """So a row is written again once for each size, and not with each new file."""
    found = files_to_join(files(90 * MIB, 10 * MIB, *[KIB] * 8), TARGET)
    assert sizes_of(found) == [[KIB] * 8]


def test_files_are_joined_in_the_order_of_their_records_up_to_the_size() -> None:
    found = files_to_join(files(*[60 * MIB] * 9), TARGET)
    assert sizes_of(found) == [[60 * MIB] * 3] * 3
    assert [file.path for group in found for file in group] == [str(index) for index in range(9)]


def test_each_row_is_written_few_times() -> None:
    """As many files as a year of minutes has, in a small table."""
    present: list[TableFile] = []
    written_bytes = 0
    for minute in range(20_000):
        present.append(TableFile(f"{minute}", 10 * KIB, 1, minute, minute))
        if minute % 8:
            continue
        for group in files_to_join(present, TARGET):
            size = sum(file.size_bytes for file in group)
            written_bytes += size
            paths = {file.path for file in group}
            present = [file for file in present if file.path not in paths]
            present.append(TableFile(f"joined-{minute}", size, 1, group[0].lowest_ms, minute))
    assert len(present) < 40
    assert written_bytes / (20_000 * 10 * KIB) < 12


@pytest.fixture
def table(tmp_path: Path) -> DeltaTopicTable:
    access = TableAccess(
        tmp_path, TopicIdentity("t", bytes(16)), StoreSettings(), {}, new_name, ManualClock()
    )
    return create_delta(access, SCHEMA, 1)


@pytest.fixture
def maintenance(table: DeltaTopicTable, tmp_path: Path) -> TableMaintenance:
    settings = TableSettings("t", TableFormat.DELTA, tmp_path)
    return TableMaintenance(table, open_store(tmp_path), settings, new_name)


def write_as_spark(table: DeltaTopicTable, location: Path, name: str, days: range) -> None:
    """Commit a file with times as 96 bits, Spark's default, without statistics of them."""
    rows = [{"until": FOREVER, "kafka_timestamp": FIRST + timedelta(days=day)} for day in days]
    path = location / name
    pq.write_table(
        pa.Table.from_pylist(rows, SCHEMA), path, use_deprecated_int96_timestamps=True, store_schema=False
    )
    add = AddAction(name, path.stat().st_size, {}, 0, True, f'{{"numRecords": {len(rows)}}}')
    DeltaTable(location).create_write_transaction([add], "append", DeltaTable(location).schema(), [])
    table.refresh()


def times(location: Path) -> list[tuple[datetime, datetime]]:
    rows = DeltaTable(location).to_pyarrow_table().to_pylist()
    return sorted((row["until"], row["kafka_timestamp"]) for row in rows)


def test_old_rows_in_files_of_spark_are_deleted(
    table: DeltaTopicTable, maintenance: TableMaintenance, tmp_path: Path
) -> None:
    write_as_spark(table, tmp_path, "a.parquet", range(4))
    assert maintenance.delete_before(int((FIRST + timedelta(days=3)).timestamp() * 1000)) == 3
    assert times(tmp_path) == [(FOREVER, FIRST + timedelta(days=3))]


def test_files_of_spark_are_joined_without_changing_times(
    table: DeltaTopicTable, maintenance: TableMaintenance, tmp_path: Path
) -> None:
    for day in range(8):
        write_as_spark(table, tmp_path, f"{day}.parquet", range(day, day + 1))
    assert maintenance.join_files() == 8
    assert times(tmp_path) == [(FOREVER, FIRST + timedelta(days=day)) for day in range(8)]
