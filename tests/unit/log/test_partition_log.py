from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log
from barnabas.log.offset_lookup import earliest_offset, search_max_timestamp, search_timestamp
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.timestamps import TimestampOffset, run_search
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_TIMESTAMP, read_header
from barnabas.wire.records.record import Record, decode_all, encode_batch

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]
MakeBatch = Callable[..., memoryview]


def values_of(
    log: PartitionLog, start_offset: int = 0, max_bytes: int = 1 << 20
) -> list[tuple[int, bytes | None]]:
    values = []
    while start_offset < log.log_end_offset:
        data = log.read(start_offset, max_bytes, log.log_end_offset, min_one_batch=True).data
        records = [record for record in decode_all(data) if record.offset >= start_offset]
        values += [(record.offset, record.value) for record in records]
        start_offset = records[-1].offset + 1
    return values


def test_appended_records_are_read_with_their_offsets(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    assert produce(log, b"a", b"b") == AppendInfo(0, 1, NO_TIMESTAMP, 0, False, log.size_bytes)
    assert produce(log, b"c").first_offset == 2
    assert log.log_end_offset == 3
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert values_of(log, 1) == [(1, b"b"), (2, b"c")]


def test_offset_and_epoch_are_written_into_the_callers_bytes(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log()
    log.append_as_leader(make_batch(b"a"), 3)
    batch = make_batch(b"b")
    log.append_as_leader(batch, 4)
    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (1, 4)
    assert bytes(log.read(1, 1000, 2).data) == bytes(batch)
    assert log.epochs.entries == ((3, 0), (4, 1))


def test_reading_ends_at_the_upper_bound(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    for value in (b"a", b"b", b"c"):
        produce(log, value)
    assert [record.value for record in decode_all(log.read(0, 1000, 2).data)] == [b"a", b"b"]
    assert log.read(2, 1000, 2).size_bytes == 0
    assert log.read(3, 1000, 3).size_bytes == 0
    assert log.read(3, 1000, 1).size_bytes == 0


def test_reading_outside_the_log_is_out_of_range(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    log.increment_log_start_offset(1)
    for offset in (0, 4, -1):
        with pytest.raises(KafkaError, match=rf"offset {offset} of t-0 .* \[1, 3\]") as error:
            log.read(offset, 1000, 3)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_is_cut_at_max_bytes_but_the_first_batch_may_be_kept_whole(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log()
    produce(log, b"x" * 100)
    batch_bytes = log.size_bytes
    produce(log, b"y" * 100)
    assert log.read(0, 30, 2).size_bytes == 30
    assert log.read(0, 0, 2).size_bytes == 0
    assert log.read(0, 30, 2, min_one_batch=True).size_bytes == batch_bytes
    assert log.read(0, batch_bytes + 7, 2, min_one_batch=True).size_bytes == batch_bytes + 7
    assert log.read(0, 10_000, 2, min_one_batch=True).size_bytes == 2 * batch_bytes


def test_a_read_starts_at_the_batch_that_holds_the_offset(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    log_slice = log.read(2, 1000, 3)
    assert log_slice.position == 0
    assert read_header(log_slice.data).base_offset == 0


def test_a_read_returns_bytes_of_one_segment(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(segment_bytes=300)
    for index in range(20):
        produce(log, b"%d" % index * 10)
    assert len(log.segments) > 3
    assert values_of(log) == [(index, b"%d" % index * 10) for index in range(20)]
    first_end = log.segments[1].base_offset
    log_slice = log.read(first_end, 10_000, 20)
    assert (log_slice.segment_base_offset, log_slice.position) == (first_end, 0)


def test_large_reads_are_views_of_the_mapped_file_and_outlive_the_segment(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log(segment_bytes=1 << 20)
    produce(log, b"z" * 400_000)
    data = log.read(0, 1 << 20, 1).data
    produce(log, b"y" * 800_000)  # rolls
    log.delete_old_segments(0)
    close_log(log)
    assert decode_all(data)[0].value == b"z" * 400_000


def test_segments_roll_by_size(open_log: OpenLog, produce: Produce, tmp_path: Path) -> None:
    log = open_log(segment_bytes=200)
    for _ in range(4):
        produce(log, b"x" * 40)
    names = sorted(path.name for path in (tmp_path / "t-0").glob("*.log"))
    assert names == [f"{offset:020d}.log" for offset in (0, 1, 2, 3)]


def test_segments_roll_by_the_records_time(open_log: OpenLog, produce: Produce, clock: ManualClock) -> None:
    log = open_log(segment_ms=1000)
    produce(log, b"a", timestamp_ms=clock.now_ms - 5000)
    produce(log, b"b", timestamp_ms=clock.now_ms - 4000)
    assert len(log.segments) == 1
    produce(log, b"c", timestamp_ms=clock.now_ms - 3999)
    assert len(log.segments) == 2


def test_segments_without_timestamps_roll_by_their_age(
    open_log: OpenLog, produce: Produce, clock: ManualClock
) -> None:
    log = open_log(segment_ms=1000)
    produce(log, b"a", timestamp_ms=-1)
    clock.advance(1000)
    produce(log, b"b", timestamp_ms=-1)
    assert len(log.segments) == 1
    clock.advance(1)
    produce(log, b"c", timestamp_ms=-1)
    assert len(log.segments) == 2


def test_jitter_makes_segments_roll_earlier(open_log: OpenLog, produce: Produce, clock: ManualClock) -> None:
    log = open_log(segment_ms=1000, segment_jitter_ms=900)
    assert 0 < log.local.jitter_ms < 900
    produce(log, b"a")
    clock.advance(1000 - log.local.jitter_ms + 1)
    produce(log, b"b")
    assert len(log.segments) == 2


def test_segments_roll_when_an_index_is_full(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(segment_index_bytes=24, index_interval_bytes=0)
    for index in range(6):
        produce(log, b"%d" % index)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_segments_roll_before_a_relative_offset_needs_more_than_31_bits(open_log: OpenLog) -> None:
    log = open_log()
    for offset in (0, 2**31 - 1, 2**31):
        log.append_copied(memoryview(encode_batch([Record(0, 1, None, b"x")], base_offset=offset)))
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    assert log.log_end_offset == 2**31 + 1
    assert [offset for offset, _ in values_of(log)] == [0, 2**31 - 1, 2**31]


def test_rolling_an_empty_segment_changes_nothing(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    log.roll()
    assert len(log.segments) == 1
    produce(log, b"a")
    log.roll()
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_follower_keeps_offsets_epochs_and_gaps(open_log: OpenLog) -> None:
    log = open_log()
    first = encode_batch([Record(0, 1, None, b"a")], base_offset=5, leader_epoch=2)
    second = encode_batch([Record(0, 1, None, b"b"), Record(0, 1, None, b"c")], base_offset=9, leader_epoch=4)
    log.append_copied(memoryview(first + second))
    assert log.log_end_offset == 11
    assert values_of(log) == [(5, b"a"), (9, b"b"), (10, b"c")]
    assert log.epochs.entries == ((2, 5), (4, 9))
    assert decode_all(log.read(7, 1000, 11).data)[0].offset == 9


def test_a_follower_rejects_batches_below_the_log_end_offset_and_damaged_ones(open_log: OpenLog) -> None:
    log = open_log()
    batch = encode_batch([Record(0, 1, None, b"a")], base_offset=5)
    log.append_copied(memoryview(batch))
    with pytest.raises(KafkaError, match="is below the log end offset 6") as error:
        log.append_copied(memoryview(batch))
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    batch[-1] ^= 1
    with pytest.raises(KafkaError) as error:
        log.append_copied(memoryview(batch))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_the_high_watermark_stays_within_the_log(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    assert log.update_high_watermark(99) == 3
    log.increment_log_start_offset(2)
    assert log.update_high_watermark(0) == 2


def test_the_log_start_never_passes_the_high_watermark(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    log.update_high_watermark(1)
    with pytest.raises(KafkaError, match="above the high watermark 1") as error:
        log.increment_log_start_offset(2)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.increment_log_start_offset(1)
    assert not log.increment_log_start_offset(1)
    assert log.epochs.entries == ((0, 1),)


def test_truncation_removes_whole_batches_and_everything_after_them(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log(segment_bytes=300)
    for index in range(12):
        produce(log, b"%d" % index * 20, epoch=index // 4)
    removed = log.truncate_to(5)
    assert log.log_end_offset == log.high_watermark == 5
    assert all(path.name.endswith(".deleted") for path in removed)
    assert removed
    assert [offset for offset, _ in values_of(log)] == [0, 1, 2, 3, 4]
    assert log.epochs.entries == ((0, 0), (1, 4))
    produce(log, b"new", epoch=7)
    assert values_of(log)[-1] == (5, b"new")
    assert log.truncate_to(6) == []


def test_truncation_to_the_end_removes_an_epoch_in_which_nothing_was_written(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log()
    produce(log, b"a", b"b", epoch=0)
    log.begin_epoch(1)
    assert log.truncate_to(2) == []
    assert log.latest_epoch == 0
    assert values_of(log) == [(0, b"a"), (1, b"b")]


def test_truncating_fully_starts_an_empty_log_elsewhere(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b")
    removed = log.truncate_fully_and_start_at(40)
    assert [path.suffix for path in removed] == [".deleted"] * len(removed)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 40, 40)
    assert produce(log, b"c").first_offset == 40
    assert log.truncate_to(3) != []
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)


def test_a_flush_is_due_by_count_and_by_time(open_log: OpenLog, produce: Produce, clock: ManualClock) -> None:
    def is_due(after_ms: int) -> bool:
        return log.local.flush_due(clock.monotonic_ms() + after_ms, log.log_end_offset, log.config.flush_ms)

    log = open_log(flush_messages=3, flush_ms=500)
    produce(log, b"a", b"b")
    assert not log.needs_flush
    assert not is_due(499)
    assert is_due(500)
    produce(log, b"c")
    assert log.needs_flush
    assert log.flush() == log.recovery_point == 3
    assert not log.needs_flush
    assert not is_due(1000)


def test_no_flush_is_due_for_what_is_behind_a_gap(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(flush_messages=1)
    produce(log, b"a", b"b", b"c")
    log.gap_offset = 2
    assert log.needs_flush
    assert log.flush() == log.recovery_point == 2
    assert not log.needs_flush, "the next one would not move the recovery point either"
    log.gap_offset = None
    assert log.needs_flush


def test_a_flush_that_overlaps_a_truncation_does_not_count(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    flushed = log.sync()
    log.truncate_to(1)
    produce(log, b"d", b"e", b"f")
    log.mark_flushed(flushed)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == log.log_end_offset


def test_the_next_flush_covers_a_segment_that_was_cut(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", b"b", b"c")
    log.flush()
    log.truncate_to(2)
    assert log.recovery_point == 0
    assert log.flush() == 2


def test_flushing_covers_rolled_segments(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(segment_bytes=200)
    for _ in range(5):
        produce(log, b"x" * 50)
    assert log.flush() == 5


def test_retention_deletes_old_segments_and_moves_the_log_start(
    open_log: OpenLog, produce: Produce, clock: ManualClock
) -> None:
    log = open_log(segment_bytes=200, retention_ms=1000)
    for _ in range(3):
        produce(log, b"x" * 50)
    clock.advance(500)
    produce(log, b"x" * 50)
    clock.advance(501)
    removed = log.delete_old_segments(clock.wall_ms())
    assert log.log_start_offset == 3
    assert values_of(log, 3) == [(3, b"x" * 50)]
    assert {path.name.split(".", 1)[1] for path in removed} >= {"log.deleted", "index.deleted"}
    assert all(path.exists() for path in removed)


def test_retention_of_everything_leaves_an_empty_segment(
    open_log: OpenLog, produce: Produce, clock: ManualClock
) -> None:
    log = open_log(retention_ms=1000)
    produce(log, b"a", b"b")
    clock.advance(1001)
    log.delete_old_segments(clock.wall_ms())
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (2, 2, 0)
    assert log.delete_old_segments(clock.wall_ms()) == []
    assert produce(log, b"c").first_offset == 2


def test_nothing_above_the_high_watermark_is_deleted(
    open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock
) -> None:
    log = open_log(retention_ms=1000, segment_bytes=200)
    for _ in range(3):
        log.append_as_leader(make_batch(b"x" * 50), 0)
    log.update_high_watermark(2)
    clock.advance(2000)
    log.delete_old_segments(clock.wall_ms())
    assert log.log_start_offset == 2


def offset_for_timestamp(log: PartitionLog, timestamp_ms: int) -> TimestampOffset | None:
    return run_search(search_timestamp(log, timestamp_ms))


def max_timestamp_offset(log: PartitionLog) -> TimestampOffset | None:
    return run_search(search_max_timestamp(log))


def test_offsets_are_found_by_time(open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock) -> None:
    log = open_log(index_interval_bytes=100, segment_bytes=1000)
    base_ms = clock.now_ms - 100_000
    for index in range(60):
        batch = [Record(0, base_ms + 10 * index + step, None, b"v" * 20) for step in (0, 5)]
        log.append_as_leader(memoryview(encode_batch(batch)), 3)
    for index in range(60):
        assert offset_for_timestamp(log, base_ms + 10 * index) == (base_ms + 10 * index, 2 * index, 3)
        assert offset_for_timestamp(log, base_ms + 10 * index + 1) == (
            base_ms + 10 * index + 5,
            2 * index + 1,
            3,
        )
    assert offset_for_timestamp(log, 0) == (base_ms, 0, 3)
    assert offset_for_timestamp(log, base_ms + 596) is None
    assert max_timestamp_offset(log) == (base_ms + 595, 119, 3)
    log.update_high_watermark(120)
    log.increment_log_start_offset(7)
    assert offset_for_timestamp(log, 0) == (base_ms + 35, 7, 3)


def test_the_largest_timestamp_is_found_where_it_first_occurs(
    open_log: OpenLog, produce: Produce, clock: ManualClock
) -> None:
    log = open_log(segment_bytes=300)
    assert max_timestamp_offset(log) is None
    stamps = [5, 9, 3, 9, 1, 1, 1]
    for stamp in stamps:
        produce(log, b"v" * 50, timestamp_ms=clock.now_ms - 100 + stamp)
    assert max_timestamp_offset(log) == (clock.now_ms - 91, 1, 0)


def test_the_earliest_offset_has_its_epoch(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    assert earliest_offset(log) == (-1, 0, -1)
    produce(log, b"a", epoch=2)
    produce(log, b"b", epoch=5)
    assert earliest_offset(log) == (-1, 0, 2)
    assert log.latest_epoch == 5
    assert log.end_offset_for_epoch(3) == (2, 1)


def test_a_disk_error_takes_the_log_offline(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    failures: list[OSError] = []
    log.local.on_failure = failures.append
    produce(log, b"a")

    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("barnabas.base.disk.write_at", broken)
        with pytest.raises(KafkaError, match="Input/output error") as error:
            produce(log, b"b")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(failures) == 1
    assert log.log_end_offset == 1
    for action in (
        lambda: produce(log, b"c"),
        lambda: log.read(0, 1, 1),
        lambda: offset_for_timestamp(log, 0),
    ):
        with pytest.raises(KafkaError, match="offline") as error:
            action()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_batch_that_meets_a_full_disk_is_not_appended(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    produce(log, b"a")
    size_bytes = log.size_bytes
    with monkeypatch.context() as patch:
        patch.setattr("barnabas.base.disk.write_at", lambda fd, data, position: 7)
        with pytest.raises(KafkaError, match="No space left"):
            produce(log, b"b")
    assert (log.log_end_offset, log.size_bytes) == (1, size_bytes)


def test_statistics_have_offsets_producers_and_failure(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"a", producer_id=4, producer_epoch=0, base_sequence=0)
    statistics = log.statistics()
    assert statistics["log_end_offset"] == 1
    assert statistics["producers_count"] == 1
    assert statistics["failure"] is None


def test_a_timestamp_search_pauses_in_large_batches_and_continues_after_segments_are_deleted(
    open_log: OpenLog, clock: ManualClock
) -> None:
    log = open_log(segment_bytes=100_000, retention_ms=1_000)
    base_ms = clock.now_ms - 10_000
    for index in range(3):
        stamps = [base_ms + index] * 5_000
        records = [Record(0, stamp, None, b"v" * 10) for stamp in [*stamps, base_ms + 10 * (index + 1)]]
        log.append_as_leader(memoryview(encode_batch(records)), 3)
    search = search_timestamp(log, base_ms + 25)
    packed = next(step for step in search if step is not None)
    log.update_high_watermark(log.log_end_offset)
    log.delete_old_segments(clock.wall_ms())
    assert log.log_start_offset == log.log_end_offset == 15_003
    assert search.send(packed.unpack()) is None
    assert search.send(None) is None
    with pytest.raises(StopIteration) as result:
        search.send(None)
    assert result.value.value == (base_ms + 30, 15_002, 3)


def test_a_search_reads_no_batch_after_the_first_match(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log()
    for index in range(3):
        log.append_as_leader(memoryview(encode_batch([Record(0, clock.now_ms + index, None, b"v")])), 3)
    search = search_timestamp(log, clock.now_ms)
    packed = next(search)
    assert packed is not None
    with pytest.raises(StopIteration) as result:
        search.send(packed.unpack())
    assert result.value.value == (clock.now_ms, 0, 3)
