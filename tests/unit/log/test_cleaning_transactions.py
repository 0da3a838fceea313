"""Compaction of transactional records and markers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.transaction_index import read_entries
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.record import Record, encode_batch
from support.compaction import batches_of, compact, offsets_of

OpenLog = Callable[..., PartitionLog]
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def log(open_log: OpenLog) -> PartitionLog:
    return open_log(cleanup_policy=frozenset({"compact"}))


def put(log: PartitionLog, key: bytes, producer_id: int, sequence: int = 0) -> None:
    verification = log.producers.start_verification(producer_id, 0, sequence, bumps_epochs=False)
    batch = encode_batch(
        [Record(0, log.clock.wall_ms(), key, b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    log.append_as_leader(memoryview(batch), 0, verification=verification)
    log.update_high_watermark(log.log_end_offset)


def end(log: PartitionLog, producer_id: int, *, commit: bool) -> None:
    log.append_transaction_marker(EndTransactionMarker(producer_id, 0, 0, commit, log.clock.wall_ms()), 0)
    log.update_high_watermark(log.log_end_offset)


def expire_producers(log: PartitionLog) -> None:
    log.producers.states.remove_expired(log.clock.wall_ms() + DAY_MS, 1)


def compact_again(log: PartitionLog, now_ms: int) -> list[int]:
    """Compact everything once more; returns the base offsets of the remaining batches."""
    log.cleaner_offset = 0
    compact(log, now_ms)
    return [header.base_offset for header, _ in batches_of(log)]


def aborted_offsets(tmp_path: Path) -> list[int]:
    return [entry.first_offset for entry in read_entries(tmp_path / "t-0" / f"{0:020d}.txnindex")]


def test_aborted_records_are_removed_first_and_their_marker_after_the_delete_horizon(
    log: PartitionLog, clock: ManualClock, tmp_path: Path
) -> None:
    put(log, b"a", 7)
    end(log, 7, commit=False)
    put(log, b"b", 8)
    end(log, 8, commit=True)
    log.roll()
    expire_producers(log)
    assert compact_again(log, clock.now_ms) == [1, 2, 3]
    assert aborted_offsets(tmp_path) == [0]
    assert compact_again(log, clock.now_ms) == [1, 2, 3]
    assert aborted_offsets(tmp_path) == []
    assert compact_again(log, clock.now_ms + DAY_MS - 1) == [1, 2, 3]
    assert compact_again(log, clock.now_ms + DAY_MS) == [2, 3]


def test_a_commit_marker_is_removed_a_while_after_the_last_record_of_its_transaction(
    log: PartitionLog, clock: ManualClock
) -> None:
    put(log, b"a", 7)
    end(log, 7, commit=True)
    put(log, b"a", 8)
    end(log, 8, commit=True)
    log.roll()
    expire_producers(log)
    assert compact_again(log, clock.now_ms) == [1, 2, 3]
    assert compact_again(log, clock.now_ms) == [1, 2, 3]
    assert compact_again(log, clock.now_ms + DAY_MS - 1) == [1, 2, 3]
    assert compact_again(log, clock.now_ms + DAY_MS) == [2, 3]


def test_the_marker_of_an_active_producer_without_records_is_kept(
    log: PartitionLog, clock: ManualClock
) -> None:
    end(log, 7, commit=False)
    put(log, b"a", 8)
    end(log, 8, commit=True)
    log.roll()
    compact_again(log, clock.now_ms)
    assert compact_again(log, clock.now_ms + DAY_MS) == [0, 1, 2]
    assert batches_of(log)[0][0].records_count == 0


def test_the_last_batch_of_an_active_producer_and_its_marker_are_kept(
    log: PartitionLog, clock: ManualClock, tmp_path: Path
) -> None:
    put(log, b"a", 7)
    end(log, 7, commit=False)
    put(log, b"b", 8)
    end(log, 8, commit=True)
    log.roll()
    for now_ms in (clock.now_ms, clock.now_ms + DAY_MS, clock.now_ms + 2 * DAY_MS):
        assert compact_again(log, now_ms) == [0, 1, 2, 3]
    assert offsets_of(log) == [2]
    assert aborted_offsets(tmp_path) == [0]


def test_records_aborted_by_a_marker_in_the_active_segment_are_removed(
    log: PartitionLog, clock: ManualClock
) -> None:
    put(log, b"a", 7)
    log.roll()
    end(log, 7, commit=False)
    expire_producers(log)
    put(log, b"b", 8)
    assert compact_again(log, clock.now_ms) == [0, 1, 2]
    assert offsets_of(log) == [2]


def test_segments_from_an_open_transaction_on_are_not_compacted(
    log: PartitionLog, clock: ManualClock
) -> None:
    for producer_id in (7, 8, 9):
        put(log, b"a", producer_id)
        if producer_id != 8:
            end(log, producer_id, commit=True)
        log.roll()
    compact_again(log, clock.now_ms)
    assert log.cleaner_offset == 2
    assert offsets_of(log) == [0, 2, 3]
    end(log, 8, commit=False)
    compact_again(log, clock.now_ms)
    assert offsets_of(log) == [3]


def test_an_abort_in_the_clean_part_does_not_affect_the_dirty_part(
    log: PartitionLog, clock: ManualClock
) -> None:
    put(log, b"a", 7)
    end(log, 7, commit=False)
    log.roll()
    compact(log, clock.now_ms)
    put(log, b"b", 7, sequence=1)
    end(log, 7, commit=True)
    put(log, b"b", 7, sequence=2)
    end(log, 7, commit=True)
    log.roll()
    compact(log, clock.now_ms)
    assert offsets_of(log) == [4]
