from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.log.closing import close_log
from barnabas.log.compaction.cleaner import cleanable_of, plan_pass
from barnabas.log.compaction.cleaning_pass import Cleaner
from barnabas.log.compaction.offset_map import PlainOffsetMap
from barnabas.log.offset_lookup import search_timestamp
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.timestamps import run_search
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch
from support.compaction import batches_of, compact, finish, offsets_of, records_of, rewritten_segments

OpenLog = Callable[..., PartitionLog]
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def log(open_log: OpenLog) -> PartitionLog:
    return open_log(cleanup_policy=frozenset({"compact"}), index_interval_bytes=64)


def put(log: PartitionLog, *pairs: tuple[str, str | None], **options: object) -> int:
    """Append the pairs of key and value as one batch; returns the first offset."""
    now_ms = log.clock.wall_ms()
    records = [
        Record(0, now_ms, key.encode(), None if value is None else value.encode()) for key, value in pairs
    ]
    info = log.append_as_leader(memoryview(encode_batch(records, **options)), 0)  # type: ignore[arg-type]
    log.update_high_watermark(log.log_end_offset)
    return info.first_offset


def remaining(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in records_of(log)
    ]


def test_the_last_record_of_each_key_keeps_its_offset(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", "2"))
    log.roll()
    put(log, ("c", "1"), ("b", "2"))
    log.roll()
    put(log, ("a", "3"))
    compact(log, clock.now_ms)
    assert remaining(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "a", "3")]
    assert (log.log_start_offset, log.log_end_offset, log.cleaner_offset) == (0, 6, 5)


def test_truncation_lowers_the_cleaner_offset(log: PartitionLog, clock: ManualClock) -> None:
    for number in range(3):
        put(log, ("a", str(number)), ("b", str(number)))
        log.roll()
    compact(log, clock.now_ms)
    assert log.cleaner_offset == 6
    log.truncate_to(5)
    assert log.cleaner_offset == 5
    log.truncate_fully_and_start_at(2)
    assert log.cleaner_offset == 2


def test_the_active_segment_is_not_compacted(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "1"), ("a", "2"))
    compact(log, clock.now_ms)
    assert offsets_of(log) == [0, 1]
    assert log.cleaner_offset == 0


def test_nothing_above_the_high_watermark_is_compacted(log: PartitionLog, clock: ManualClock) -> None:
    for number in range(4):
        put(log, ("a", str(number)))
        log.roll()
    log.high_watermark = 2
    compact(log, clock.now_ms)
    assert offsets_of(log) == [1, 2, 3]
    assert log.cleaner_offset == 2


def test_a_second_pass_compacts_with_the_result_of_the_first(log: PartitionLog, clock: ManualClock) -> None:
    for number in range(3):
        put(log, ("a", str(number)), ("b", str(number)))
        log.roll()
        compact(log, clock.now_ms)
    put(log, ("b", "9"))
    log.roll()
    compact(log, clock.now_ms)
    assert remaining(log) == [(4, "a", "2"), (6, "b", "9")]


def test_small_segments_are_merged_and_large_ones_are_not(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}), segment_bytes=400)
    for number in range(6):
        put(log, (f"key {number}", "x" * 50))
        log.roll()
    assert len(log.segments) == 7
    compact(log, clock.now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert offsets_of(log) == list(range(6))


def test_a_full_map_ends_the_pass_and_the_next_continues_there(log: PartitionLog, clock: ManualClock) -> None:
    for number in range(4):
        put(log, (f"a{number}", "1"), (f"b{number}", "1"))
        log.roll()
    put(log, ("a0", "2"))
    log.roll()
    compact(log, clock.now_ms, keys_count_max=3)
    assert log.cleaner_offset == 3
    assert offsets_of(log) == list(range(9))
    while log.cleaner_offset < log.log_end_offset:
        compact(log, clock.now_ms, keys_count_max=3)
    assert offsets_of(log) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_tombstone_is_kept_until_its_delete_horizon(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("c", "1"))
    log.roll()
    put(log, ("z", "1"))
    log.roll()
    compact(log, clock.now_ms)
    assert remaining(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1"), (4, "z", "1")]
    [horizon_ms] = {header.delete_horizon_ms for header, _ in batches_of(log)} - {None}
    assert horizon_ms == clock.now_ms + DAY_MS
    log.cleaner_offset = 0
    compact(log, clock.now_ms + DAY_MS - 1)
    assert (2, "a", None) in remaining(log)
    log.cleaner_offset = 0
    compact(log, clock.now_ms + DAY_MS)
    assert remaining(log) == [(1, "b", "1"), (3, "c", "1"), (4, "z", "1")]
    assert {record.timestamp_ms for record in records_of(log)} == {clock.now_ms}


def test_a_tombstone_of_the_earliest_time_does_not_end_compaction(
    log: PartitionLog, clock: ManualClock
) -> None:
    stamp = clock.now_ms - (2**63 - 1) + 1_000
    log.append_as_leader(memoryview(encode_batch([Record(0, stamp, b"a", None)])), 0)
    put(log, ("b", "1"))
    log.roll()
    for _ in range(3):
        compact(log, clock.now_ms)
        log.cleaner_offset = 0
    assert remaining(log) == [(0, "a", None), (1, "b", "1")]
    assert records_of(log)[0].timestamp_ms == stamp


def test_a_tombstone_is_kept_forever_with_the_longest_retention(
    log: PartitionLog, clock: ManualClock
) -> None:
    log.config = replace(log.config, delete_retention_ms=2**63 - 1)
    put(log, ("a", None))
    log.roll()
    for _ in range(3):
        compact(log, clock.now_ms)
        log.cleaner_offset = 0
    assert remaining(log) == [(0, "a", None)]


def test_the_last_batch_of_a_pass_is_kept_without_its_records(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "1"))
    put(log, ("a", None))
    log.roll()
    put(log, ("b", "1"))
    compact(log, clock.now_ms)
    log.cleaner_offset = 0
    compact(log, clock.now_ms + DAY_MS)
    headers = [(header.base_offset, header.records_count) for header, _ in batches_of(log)]
    assert headers == [(1, 0), (2, 1)]


def test_the_last_batch_of_an_active_producer_is_kept_without_its_records(
    log: PartitionLog, clock: ManualClock
) -> None:
    options = {"producer_id": 7, "producer_epoch": 2}
    put(log, ("a", "1"), base_sequence=0, **options)
    put(log, ("a", "2"), ("b", "2"), base_sequence=1, **options)
    put(log, ("a", "3"), ("b", "3"))
    log.roll()
    compact(log, clock.now_ms)
    assert offsets_of(log) == [3, 4]
    [kept, _] = [header for header, _ in batches_of(log)]
    assert (kept.base_offset, kept.records_count, kept.last_sequence) == (1, 0, 2)
    log.producers.states.remove_expired(clock.now_ms + DAY_MS, DAY_MS)
    log.cleaner_offset = 0
    compact(log, clock.now_ms)
    assert [header.base_offset for header, _ in batches_of(log)] == [3]


def test_producers_are_restored_from_a_compacted_log(
    log: PartitionLog, open_log: OpenLog, clock: ManualClock, tmp_path: Path
) -> None:
    options = {"producer_id": 7, "producer_epoch": 2}
    put(log, ("a", "1"), base_sequence=0, **options)
    put(log, ("a", "2"), base_sequence=1, **options)
    put(log, ("a", "3"))
    log.roll()
    compact(log, clock.now_ms)
    before = log.producers.states.active
    close_log(log)
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        path.unlink()
    assert open_log(clean_shutdown=True).producers.states.active == before


@pytest.mark.parametrize("codec", Compression)
def test_batches_keep_their_codec(log: PartitionLog, clock: ManualClock, codec: Compression) -> None:
    put(log, ("a", "1"), ("b", "1" * 100), compression=codec)
    put(log, ("a", "2"))
    log.roll()
    compact(log, clock.now_ms)
    [(header, records), _] = batches_of(log)
    assert header.compression is codec
    assert [record.key for record in records] == [b"b"]


def test_a_batch_without_obsolete_records_is_not_changed(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "1"), ("b", "1"), compression=Compression.ZSTD)
    log.roll()
    before = bytes(log.segments[0].view(0, log.segments[0].size_bytes))
    compact(log, clock.now_ms)
    assert bytes(log.segments[0].view(0, log.segments[0].size_bytes)) == before


def test_records_without_a_key_are_removed(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log()
    log.append_as_leader(memoryview(encode_batch([Record(0, clock.now_ms, None, b"v")])), 0)
    put(log, ("a", "1"))
    log.roll()
    compact(log, clock.now_ms)
    assert remaining(log) == [(1, "a", "1")]


def test_a_read_skips_gaps_and_empty_segments(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}), segment_bytes=200)
    for number in range(9):
        put(log, ("a", str(number) * 60))
        log.roll()
    put(log, ("b", "1"))
    compact(log, clock.now_ms)
    assert offsets_of(log) == [8, 9]
    assert min(segment.size_bytes for segment in log.segments) == 0
    for start_offset in range(9):
        log_slice = log.read(start_offset, 10_000, log.log_end_offset)
        assert read_header(log_slice.data).base_offset == 8
    assert run_search(search_timestamp(log, 0)).offset == 8  # type: ignore[union-attr]


def test_a_compacted_log_is_restored_after_a_kill(
    log: PartitionLog, open_log: OpenLog, clock: ManualClock
) -> None:
    for number in range(5):
        put(log, (f"k{number % 2}", str(number)), ("x", str(number)))
        log.roll()
    compact(log, clock.now_ms)
    before = remaining(log)
    log.local.abandon()
    again = open_log()
    assert remaining(again) == before
    assert again.log_end_offset == 10


def test_damage_ends_the_pass_without_leaving_temporary_files(
    log: PartitionLog, clock: ManualClock, tmp_path: Path
) -> None:
    put(log, ("a", "1"))
    log.roll()
    put(log, ("a", "2"))
    log.roll()
    path = log.segments[1].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(KafkaError, match="offset 1 does not match its CRC") as error:
        rewritten_segments(log, clock.now_ms)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert not list((tmp_path / "t-0").glob("*.cleaned"))


def test_a_batch_larger_than_a_step_is_read_whole(log: PartitionLog, clock: ManualClock) -> None:
    put(log, ("a", "x" * 10_000), ("b", "y" * 10_000))
    put(log, ("a", "z"))
    log.roll()
    compact(log, clock.now_ms, step_bytes=100)
    assert offsets_of(log) == [1, 2]


def test_the_files_of_an_interrupted_cleaning_are_removed(
    log: PartitionLog, clock: ManualClock, tmp_path: Path
) -> None:
    put(log, ("a", "1"))
    log.roll()
    plan = plan_pass(log, cleanable_of(log, clock.now_ms), clock.now_ms)
    cleaner = Cleaner(plan, PlainOffsetMap(9), 4_096)
    finish(cleaner.build_offset_map())
    steps = cleaner.clean_segments(cleaner.sources)
    next(steps)
    assert list((tmp_path / "t-0").glob("*.cleaned"))
    steps.close()
    assert not list((tmp_path / "t-0").glob("*.cleaned"))


class Crash(BaseException):
    pass


@pytest.mark.parametrize("steps_count", range(12))
def test_a_crash_at_any_step_of_the_swap_loses_nothing(
    open_log: OpenLog, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps_count: int
) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}), index_interval_bytes=0)
    for number in range(4):
        put(log, ("a", str(number)), (f"k{number}", "1"))
        log.roll()
    put(log, ("a", "9"))
    before = remaining(log)
    _, [(old, new)] = rewritten_segments(log, clock.now_ms)
    rename, renames_count = disk.rename, 0

    def rename_or_crash(path: Path, target: Path) -> Path:
        nonlocal renames_count
        if renames_count == steps_count:
            raise Crash
        renames_count += 1
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "rename", rename_or_crash)
        with pytest.raises(Crash):
            log.replace_segments(old, new)
    again = open_log()
    compacted = [(1, "k0", "1"), (3, "k1", "1"), (5, "k2", "1"), (6, "a", "3"), (7, "k3", "1"), (8, "a", "9")]
    assert remaining(again) == (before if steps_count < 3 else compacted)
    assert again.log_end_offset == 9
    assert not [
        path for path in (tmp_path / "t-0").iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")
    ]
    close_log(again)
    assert remaining(open_log(clean_shutdown=True)) == remaining(again)


def test_a_disk_error_in_a_swap_takes_the_log_offline(
    log: PartitionLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(log, ("a", "1"))
    log.roll()
    _, [(old, new)] = rewritten_segments(log, clock.now_ms)

    def broken(path: Path, target: Path) -> Path:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk, "rename", broken)
    with pytest.raises(KafkaError, match="Input/output error"):
        log.replace_segments(old, new)
    assert log.failure is not None


def test_a_view_of_a_replaced_segment_stays_valid(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    put(log, ("a", "1" * 400_000))
    put(log, ("a", "2"))
    log.roll()
    view = log.read(0, 1_000_000, log.log_end_offset).data
    expected = bytes(view)
    compact(log, clock.now_ms)
    assert view == expected
    assert offsets_of(log) == [1]
