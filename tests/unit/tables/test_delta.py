"""Delta tables without a topic."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from barnabas.base.clock import ManualClock
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.tables.building import new_name
from barnabas.tables.data_files import DataFileWriter, new_data_path
from barnabas.tables.delta import create_delta
from barnabas.tables.table import OffsetAdvance, TableAccess, TopicIdentity

TIME = pa.timestamp("us", "UTC")
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("time", [FIRST, LAST], ids=["the first", "the last"])
def test_times_at_the_ends_of_the_calendar_are_committed_and_found(tmp_path: Path, time: datetime) -> None:
    """Applications write them for "always" and "for ever"."""
    identity = TopicIdentity("t", bytes(16))
    access = TableAccess(tmp_path, identity, StoreSettings(), {}, new_name, ManualClock())
    rows = pa.record_batch({"valid": pa.array([time], TIME), "kafka_timestamp": pa.array([0], TIME)})
    table = create_delta(access, rows.schema, 1)
    writer = DataFileWriter(open_store(tmp_path), rows.schema, lambda: new_data_path("", new_name), 1 << 20)
    writer.write(rows)
    table.append(writer.close(), {0: OffsetAdvance(None, 1)})
    found = pl.scan_delta(str(tmp_path)).filter(pl.col("valid") == time).collect()
    assert found["valid"].to_list() == [time]
