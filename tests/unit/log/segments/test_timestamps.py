"""Searches by timestamp in a log of several segments."""

from collections.abc import Callable

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log
from barnabas.log.offset_lookup import search_max_timestamp, search_timestamp
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments import timestamps
from barnabas.log.segments.timestamps import run_search

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]
SEGMENTS_COUNT = 12


@pytest.fixture
def reopened(open_log: OpenLog, produce: Produce, clock: ManualClock) -> PartitionLog:
    """A log that was closed and opened again, with 12 segments; the files of four may be open."""
    log = open_log(segment_bytes=500, index_interval_bytes=100)
    while len(log.segments) < SEGMENTS_COUNT:
        produce(log, b"v" * 20, timestamp_ms=clock.now_ms - 1_000 + log.log_end_offset)
    close_log(log)
    return open_log(retention_ms=100_000, clean_shutdown=True)


def assert_only_open_segments_are_in_memory(log: PartitionLog) -> None:
    closed = [segment for segment in log.segments if not segment.is_open]
    assert len(closed) >= SEGMENTS_COUNT - 4
    for segment in closed:
        assert segment.offset_index._held is None
        assert segment.time_index._held is None
        assert segment.transaction_index._loaded is None


def test_indexes_of_closed_segments_are_not_in_memory(reopened: PartitionLog, clock: ManualClock) -> None:
    assert_only_open_segments_are_in_memory(reopened)
    reopened.update_high_watermark(reopened.log_end_offset)
    reopened.delete_old_segments(clock.wall_ms())
    assert len(reopened.segments) == SEGMENTS_COUNT
    assert_only_open_segments_are_in_memory(reopened)
    largest = run_search(search_max_timestamp(reopened))
    assert largest is not None
    assert largest.offset == reopened.log_end_offset - 1
    assert_only_open_segments_are_in_memory(reopened)
    for offset in range(reopened.log_end_offset):
        found = run_search(search_timestamp(reopened, clock.now_ms - 1_000 + offset))
        assert found is not None
        assert found.offset == offset
    assert_only_open_segments_are_in_memory(reopened)


def test_the_search_for_the_largest_timestamp_pauses_after_each_segment(reopened: PartitionLog) -> None:
    search = search_max_timestamp(reopened)
    assert [next(search) for _ in range(SEGMENTS_COUNT)] == [None] * SEGMENTS_COUNT
    assert next(search) is not None


def test_the_search_for_the_largest_timestamp_begins_again_if_a_segment_is_removed(
    reopened: PartitionLog, clock: ManualClock
) -> None:
    search = search_max_timestamp(reopened)
    for _ in range(3):
        next(search)
    end_offset = reopened.log_end_offset
    reopened.update_high_watermark(end_offset)
    clock.advance(1_000_000)
    reopened.delete_old_segments(clock.wall_ms())
    assert run_search(search) is None
    assert len(reopened.segments) == 1


def test_a_search_begins_again_if_its_segment_is_removed(
    open_log: OpenLog, produce: Produce, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "LOOKED_AT_COUNT", 1)
    log = open_log(segment_bytes=500, index_interval_bytes=10_000, retention_ms=100_000)
    while len(log.segments) < 3:
        produce(log, b"v" * 20, timestamp_ms=clock.now_ms)
    last_of_first = log.segments[1].base_offset - 1
    produce(log, b"v" * 20, timestamp_ms=clock.now_ms + 2_000_000)
    search = search_timestamp(log, clock.now_ms + 1)
    assert [next(search) for _ in range(3)] == [None] * 3
    clock.advance(1_000_000)
    log.update_high_watermark(log.log_end_offset)
    log.delete_old_segments(clock.wall_ms())
    assert log.log_start_offset > last_of_first
    found = run_search(search)
    assert found is not None
    assert found.offset == log.log_end_offset - 1
