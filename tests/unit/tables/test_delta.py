"""Delta tables without a topic."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures

from barnabas.base.clock import ManualClock
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.tables.building import new_name
from barnabas.tables.data_files import DataFile, DataFileWriter, new_data_path
from barnabas.tables.delta import create_delta, open_delta
from barnabas.tables.errors import TableError
from barnabas.tables.table import OffsetAdvance, TableAccess, TopicIdentity

TIME = pa.timestamp("us", "UTC")
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def access(location: Path) -> TableAccess:
    return TableAccess(location, TopicIdentity("t", bytes(16)), StoreSettings(), {}, new_name, ManualClock())


def files_of(location: Path, rows: pa.RecordBatch) -> list[DataFile]:
    writer = DataFileWriter(open_store(location), rows.schema, lambda: new_data_path("", new_name), 1 << 20)
    writer.write(rows)
    return writer.close()


@pytest.mark.parametrize("time", [FIRST, LAST], ids=["the first", "the last"])
def test_times_at_the_ends_of_the_calendar_are_committed_and_found(tmp_path: Path, time: datetime) -> None:
    """Applications write them for "always" and "for ever"."""
    rows = pa.record_batch({"valid": pa.array([time], TIME), "kafka_timestamp": pa.array([0], TIME)})
    table = create_delta(access(tmp_path), rows.schema, 1)
    table.append(files_of(tmp_path, rows), {0: OffsetAdvance(None, 1)})
    found = pl.scan_delta(str(tmp_path)).filter(pl.col("valid") == time).collect()
    assert found["valid"].to_list() == [time]


def test_offsets_outlive_the_log_before_a_checkpoint(tmp_path: Path) -> None:
    """Delta deletes the older part of a log after the history of the table."""
    rows = pa.record_batch({"kafka_timestamp": pa.array([0], TIME)})
    table = create_delta(access(tmp_path), rows.schema, 1)
    table.append(files_of(tmp_path, rows), {7: OffsetAdvance(None, 5)})
    for offset in range(101):
        table.append(files_of(tmp_path, rows), {0: OffsetAdvance(offset or None, offset + 1)})
    log = tmp_path / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    for path in log.glob("*.json"):
        if path.name < checkpoint.name:
            path.unlink()
    reopened = open_delta(access(tmp_path))
    assert reopened is not None
    assert reopened.next_offsets([0, 1, 7]) == {0: 101, 7: 5}
    assert len(reopened.files()) == 102


def test_a_table_that_delta_rs_cannot_write_is_no_conflict(tmp_path: Path) -> None:
    """It would be tried again without a word."""
    rows = pa.record_batch({"kafka_timestamp": pa.array([0], TIME)})
    table = create_delta(access(tmp_path), rows.schema, 1)
    other = DeltaTable(tmp_path)
    other.alter.add_feature(TableFeatures.IdentityColumns, allow_protocol_versions_increase=True)
    table.refresh()
    with pytest.raises(TableError, match="cannot be changed: Unsupported table features"):
        table.append(files_of(tmp_path, rows), {0: OffsetAdvance(None, 1)})
