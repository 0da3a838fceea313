"""Mapping original offsets to those in the restored topic."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.reading.connection import ConnectionOptions
from barnabas.wire.errors import ErrorCode, KafkaError
from pyspark_barnabas.jobs.restore import offset_map
from pyspark_barnabas.jobs.restore.offset_map import RUNS, OffsetRun, RestoredOffsetMap, read_map
from pyspark_barnabas.jobs.restore.plan import RestoreError
from pyspark_barnabas.jobs.restore.state import STATE, MappedPart, RestoreState

MAP = RestoredOffsetMap("again", 0, [OffsetRun(10, 0, 5), OffsetRun(15, 6, 2), OffsetRun(30, 8, 1)])

FULL = MappedPart("orders", 1, 10, 31, 8, "again", 0)
EMPTY = MappedPart("orders", 2, 7, 7, 0, "again", 4)


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
    with pytest.raises(RestoreError, match=r"has no file _restore\.json"):
        read_map(tmp_path)
    (tmp_path / STATE).write_text(RestoreState("archive", "restore-1", 1, (FULL, EMPTY)).to_json())
    for number, run in enumerate(reversed(MAP.runs)):
        row = {"topic": "orders", "partition": 1, "restored_topic": "again", **run._asdict()}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / RUNS / f"{number}.parquet")
    maps = read_map(tmp_path)
    assert maps == {
        TopicPartition("orders", 1): MAP,
        TopicPartition("orders", 2): RestoredOffsetMap("again", 4, []),
    }


@pytest.mark.parametrize("offset", [0, 7])
def test_in_a_partition_without_records_a_consumer_continues_where_the_restore_began(offset: int) -> None:
    assert RestoredOffsetMap("again", 4, []).translated(offset) == 4


class Cluster:
    """A client of a cluster where a transaction that commits an offset is open."""

    def __init__(self) -> None:
        self.groups = self
        self.committed: dict[TopicPartition, int] = {}

    def offsets(self, group: str, *, stable: bool) -> dict[TopicPartition, OffsetAndMetadata | KafkaError]:
        offset = KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT) if stable else OffsetAndMetadata(12, -1, "")
        return {TopicPartition("orders", 1): offset}

    def commit_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, None]:
        self.committed |= offsets
        return dict.fromkeys(offsets)

    def close(self) -> None:
        pass


def test_offsets_that_a_transaction_may_still_change_are_not_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    monkeypatch.setattr(offset_map, "connected", lambda _: cluster)
    monkeypatch.setattr(offset_map, "read_map", lambda _: {TopicPartition("orders", 1): MAP})
    connection = ConnectionOptions("127.0.0.1:9092")
    with pytest.raises(KafkaError, match="UNSTABLE_OFFSET_COMMIT"):
        offset_map.translate_groups(connection, connection, tmp_path, ["billing"])
    assert cluster.committed == {}
