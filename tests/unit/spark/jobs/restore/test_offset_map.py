"""Mapping original offsets to those in the restored topic."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.restore.offset_map import RUNS, OffsetRun, RestoredOffsetMap, read_map
from pyspark_barnabas.jobs.restore.plan import RestoreError

MAP = RestoredOffsetMap("again", [OffsetRun(10, 0, 5), OffsetRun(15, 6, 2), OffsetRun(30, 8, 1)])


@pytest.mark.parametrize(
    ("offset", "restored"),
    [(0, 0), (10, 0), (14, 4), (15, 6), (16, 7), (17, 8), (29, 8), (30, 8), (31, 9), (1_000, 9)],
)
def test_a_consumer_continues_at_its_first_unread_record(offset: int, restored: int) -> None:
    assert MAP.translated(offset) == restored


def test_every_record_is_read_once_wherever_a_consumer_stopped() -> None:
    originals = [run.offset + step for run in MAP.runs for step in range(run.records_count)]
    restored = [run.restored_offset + step for run in MAP.runs for step in range(run.records_count)]
    for stop in range(40):
        read = [offset for offset in originals if offset < stop]
        rest = [offset for offset in restored if offset >= MAP.translated(stop)]
        assert len(read) + len(rest) == len(originals)


def test_a_map_is_read_from_any_files_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match="has no offset map"):
        read_map(tmp_path)
    (tmp_path / RUNS).mkdir()
    for number, run in enumerate(reversed(MAP.runs)):
        row = {"topic": "orders", "partition": 1, "restored_topic": "again", **run._asdict()}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / RUNS / f"{number}.parquet")
    assert read_map(tmp_path) == {TopicPartition("orders", 1): MAP}
