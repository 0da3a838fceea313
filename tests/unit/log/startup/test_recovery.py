import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log
from barnabas.log.leader_epoch_cache import LeaderEpochs
from barnabas.log.log_config import LogConfig
from barnabas.log.offset_lookup import search_max_timestamp
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers.producer_state_manager import ActiveProducer
from barnabas.log.segments.timestamps import run_search
from barnabas.wire.records.record import Record, decode_all, encode_batch

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


@pytest.fixture
def filled(open_log: OpenLog, produce: Produce) -> PartitionLog:
    """Return a log of several segments with two producers and two epochs, not closed."""
    log = open_log(config=CONFIG)
    for index in range(24):
        options = {"producer_id": index % 2, "producer_epoch": 0, "base_sequence": index // 2}
        produce(log, b"value %d" % index * 5, epoch=index // 12, timestamp_ms=1_000 + index, **options)
    return log


def reopened(
    tmp_path: Path, clock: ManualClock, *, recovery_point: int = 0, clean: bool = False
) -> PartitionLog:
    log = open_log(
        tmp_path / "t-0",
        TopicPartition("t", 0),
        config=CONFIG,
        clock=clock,
        recovery_point=recovery_point,
        clean_shutdown=clean,
    )
    log.update_high_watermark(log.log_end_offset)
    return log


def contents(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    records_found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        records = decode_all(log.read(offset, 1 << 20, log.log_end_offset, min_one_batch=True).data)
        records_found += [(record.offset, record.value) for record in records if record.offset >= offset]
        offset = records[-1].offset + 1
    return records_found


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("recovery_point", [0, 7, 24])
def test_everything_is_restored_after_a_kill(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock, recovery_point: int
) -> None:
    log = reopened(tmp_path, clock, recovery_point=recovery_point)
    assert contents(log) == contents(filled)
    assert log.producers.states.active == filled.producers.states.active
    assert log.epochs.entries == filled.epochs.entries
    assert run_search(search_max_timestamp(log)) == run_search(search_max_timestamp(filled))
    assert log.recovery_point in [segment.base_offset for segment in filled.segments]
    assert log.recovery_point <= recovery_point


def test_recovered_files_equal_those_of_a_clean_shutdown(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    shutil.copytree(tmp_path / "t-0", tmp_path / "killed")
    close_log(filled)
    expected = files(tmp_path / "t-0")
    shutil.rmtree(tmp_path / "t-0")
    (tmp_path / "killed").rename(tmp_path / "t-0")
    for index in (tmp_path / "t-0").glob("*index"):
        index.unlink()
    close_log(reopened(tmp_path, clock))
    assert files(tmp_path / "t-0") == expected


def test_files_are_not_changed_after_a_clean_shutdown(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    before = contents(filled)
    close_log(filled)
    state = files(tmp_path / "t-0")
    log = reopened(tmp_path, clock, clean=True)
    assert log.recovery_point == log.log_end_offset == 24
    assert contents(log) == before
    assert log.producers.states.active == filled.producers.states.active
    close_log(log)
    assert files(tmp_path / "t-0") == state


def test_a_retry_after_a_restart_is_recognized_as_duplicate(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    close_log(filled)
    log = reopened(tmp_path, clock, clean=True)
    retry = encode_batch([Record(0, 1_023, None, b"x")], producer_id=1, producer_epoch=0, base_sequence=11)
    info = log.append_as_leader(memoryview(retry), 1)
    assert (info.duplicate, info.first_offset) == (True, 23)


@pytest.mark.parametrize("seed", range(40))
def test_recovery_keeps_all_records_before_the_damage(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock, seed: int
) -> None:
    """Truncate or flip a bit in any segment and damage all indexes: a prefix of the log remains."""
    random = Random(seed)
    before = contents(filled)
    directory = tmp_path / "t-0"
    damaged = random.choice(sorted(directory.glob("*.log")))
    data = bytearray(damaged.read_bytes())
    position = random.randrange(len(data))
    if random.random() < 0.5:
        del data[position:]
    else:
        data[position] ^= 1 << random.randrange(8)
    damaged.write_bytes(data)
    for index in directory.glob("*index"):
        index.write_bytes(random.randbytes(random.randrange(40)))
    log = reopened(tmp_path, clock)
    after = [value for _, value in contents(log)]
    assert after == [value for _, value in before[: len(after)]]
    assert len(after) >= int(damaged.name[:20])
    end_offset = log.log_end_offset
    info = log.append_as_leader(memoryview(encode_batch([Record(0, 1, None, b"next")])), 1)
    assert info.first_offset == end_offset


def test_a_batch_with_a_lower_offset_is_cut_off_although_its_crc_matches(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    path = max((tmp_path / "t-0").glob("*.log"))
    base_offset = int(path.name[:20])
    data = bytearray(path.read_bytes())
    (first_length,) = struct.unpack_from(">i", data, 8)
    struct.pack_into(">q", data, first_length + 12, base_offset)
    path.write_bytes(data)
    assert reopened(tmp_path, clock).log_end_offset == base_offset + 1


def test_wrong_index_entries_below_the_recovery_point_do_not_affect_reads(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    before = contents(filled)
    close_log(filled)
    for index in (tmp_path / "t-0").glob("*.index"):
        entries = index.read_bytes()
        index.write_bytes(b"".join(struct.pack(">ii", at + 1, at * 3) for at in range(len(entries) // 8 + 1)))
    log = reopened(tmp_path, clock, clean=True)
    for offset, value in before:
        records = decode_all(log.read(offset, 1 << 20, 24, min_one_batch=True).data)
        assert records[0] == records[0]._replace(offset=offset, value=value)


def test_lost_leader_epochs_are_restored_from_the_batches(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("nonsense")
    assert reopened(tmp_path, clock, recovery_point=24, clean=True).epochs.entries == ((0, 0), (1, 12))
    assert LeaderEpochs(tmp_path / "t-0").entries == ((0, 0), (1, 12))


def test_damaged_snapshots_are_written_again(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    snapshots = {path: path.read_bytes() for path in (tmp_path / "t-0").glob("*.snapshot")}
    assert snapshots
    for snapshot in snapshots:
        snapshot.write_bytes(b"nonsense")
    assert reopened(tmp_path, clock).producers.states.active == filled.producers.states.active
    assert {path: path.read_bytes() for path in (tmp_path / "t-0").glob("*.snapshot")} == snapshots


def test_a_retry_of_a_batch_that_a_power_failure_has_lost_is_appended_although_a_snapshot_includes_it(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    before_last, last = list(filled.segments)[-2:]
    *_, (position, lost) = before_last.headers()
    with before_last.path.open("r+b") as file:
        file.truncate(position)
    last.path.write_bytes(b"")
    log = reopened(tmp_path, clock)
    assert log.log_end_offset == last.base_offset
    retry = encode_batch(
        [Record(0, 1_023, None, b"x")],
        producer_id=lost.producer_id,
        producer_epoch=0,
        base_sequence=lost.base_sequence,
    )
    info = log.append_as_leader(memoryview(retry), 1)
    assert (info.duplicate, info.first_offset) == (False, last.base_offset)


def test_a_producer_whose_batches_were_all_deleted_is_known_after_a_kill(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log(config=CONFIG)
    produce(log, b"first", producer_id=7, producer_epoch=3, base_sequence=0)
    for index in range(24):
        produce(log, b"value %d" % index * 5, producer_id=1, producer_epoch=0, base_sequence=index)
    start = list(log.segments)[2].base_offset
    for path in log.directory.iterdir():
        if path.stem.isdigit() and int(path.stem) < start:
            path.unlink()
    recovered = open_log(config=CONFIG, log_start_offset=start)
    assert recovered.producers.states.active == log.producers.states.active
    assert {producer.producer_id for producer in recovered.producers.states.active} == {1, 7}


def test_snapshots_beyond_the_end_are_removed(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    close_log(filled)
    last = max((tmp_path / "t-0").glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    log = reopened(tmp_path, clock)
    assert log.log_end_offset == 23
    assert log.producers.states.active[1] == ActiveProducer(1, 0, 10, 1_021, -1, -1)


def test_leftovers_of_deletion_and_orphaned_indexes_are_removed(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    directory = tmp_path / "t-0"
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000900.index",
        "00000000000000000900.timeindex",
    ):
        (directory / name).write_bytes(b"x" * 24)
    log = reopened(tmp_path, clock)
    assert log.log_end_offset == 24
    close_log(log)
    assert not list(directory.glob("*.deleted"))
    assert not list(directory.glob("*900*"))


def test_an_interrupted_swap_of_compacted_segments_is_completed(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    close_log(filled)
    directory = tmp_path / "t-0"
    first, second, third = sorted(directory.glob("*.log"))[:3]
    merged = encode_batch(
        [Record(0, 1, b"k", b"first"), Record(int(third.name[:20]) - 1, 2, b"k", b"last")], keep_offsets=True
    )
    (directory / (first.name + ".swap")).write_bytes(merged)
    (directory / (first.stem + ".index.swap")).write_bytes(b"")
    log = reopened(tmp_path, clock, clean=True)
    assert not list(directory.glob("*.swap"))
    assert not second.exists()
    assert contents(log)[:2] == [(0, b"first"), (int(third.name[:20]) - 1, b"last")]
    assert log.log_end_offset == 24


def test_an_unfinished_split_is_undone(filled: PartitionLog, tmp_path: Path, clock: ManualClock) -> None:
    before = contents(filled)
    close_log(filled)
    directory = tmp_path / "t-0"
    (directory / "00000000000000000000.log.cleaned").write_bytes(b"x")
    (directory / "00000000000000000003.log.swap").write_bytes(b"x")
    log = reopened(tmp_path, clock, clean=True)
    assert contents(log) == before
    assert not list(directory.glob("*.cleaned"))
    assert not list(directory.glob("*.swap"))


def test_a_log_that_ends_before_its_start_offset_is_emptied(
    filled: PartitionLog, open_log: OpenLog, tmp_path: Path
) -> None:
    log = open_log(log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert [path.name for path in (tmp_path / "t-0").glob("*.log")] == [f"{100:020d}.log"]


def test_a_log_start_offset_within_a_segment_is_kept(filled: PartitionLog, open_log: OpenLog) -> None:
    close_log(filled)
    log = open_log(log_start_offset=14, clean_shutdown=True, high_watermark=20)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (14, 20, 24)
    assert log.epochs.entries == ((1, 14),)


def test_preallocated_files_end_where_the_batches_end(
    open_log: OpenLog, produce: Produce, tmp_path: Path
) -> None:
    log = open_log(segment_bytes=4096, preallocate=True)
    produce(log, b"a" * 100)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    assert path.stat().st_size == 4096
    size_bytes = log.size_bytes
    assert open_log(segment_bytes=4096).log_end_offset == 1
    close_log(log)
    assert path.stat().st_size == size_bytes


def test_open_transactions_and_markers_are_restored(open_log: OpenLog) -> None:
    log = open_log()
    for producer_id in (1, 2):
        batch = encode_batch(
            [Record(0, 5, None, b"x")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            base_offset=log.log_end_offset,
        )
        log.append_copied(memoryview(batch))
    marker = Record(0, 9, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 7))
    batch = encode_batch(
        [marker], producer_id=1, producer_epoch=0, transactional=True, control=True, base_offset=2
    )
    log.append_copied(memoryview(batch))
    expected = [ActiveProducer(1, 0, 0, 9, 7, -1), ActiveProducer(2, 0, 0, 5, -1, 1)]
    assert log.producers.states.active == expected
    recovered = open_log()
    assert recovered.producers.states.active == expected
    recovered.update_high_watermark(3)
    assert recovered.last_stable_offset == 1
    assert recovered.high_watermark == 3


@pytest.mark.parametrize(
    ("recovery_point", "clean", "is_found"), [(0, False, True), (1000, False, False), (0, True, True)]
)
def test_a_gap_between_segments_is_found_if_they_were_not_flushed(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock, recovery_point: int, clean: bool, is_found: bool
) -> None:
    assert reopened(tmp_path, clock).gap_offset is None
    first, second, *_ = list(filled.segments)
    *_, (position, header) = first.headers()
    with first.path.open(
        "r+b"
    ) as file:  # the last batch of the first segment is lost, the second segment is not
        file.truncate(position)
    log = reopened(tmp_path, clock, recovery_point=recovery_point, clean=clean)
    assert log.gap_offset == (header.base_offset if is_found else None)
    assert second.base_offset > header.base_offset
    log.flush()
    assert log.recovery_point == (header.base_offset if is_found else log.log_end_offset), "found again"


def truncated_and_rolled(
    filled: PartitionLog, directory: Path
) -> tuple[PartitionLog, dict[str, bytes], list[int]]:
    """Cut a segment, and append with a later epoch until there is another one.

    Returns the log, the files before the cut, and the base offsets of the last segments then and now.
    """
    before = files(directory)
    bases = [segment.base_offset for segment in filled.segments]
    filled.truncate_to(bases[-1] + 1)
    while len(list(filled.segments)) == len(bases):
        filled.append_as_leader(memoryview(encode_batch([Record(0, 1, None, b"v" * 150)])), 2)
    return filled, before, [bases[-1], [segment.base_offset for segment in filled.segments][-1]]


def test_a_truncation_that_a_power_failure_has_undone_is_repeated(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    _, before, (cut_base, _) = truncated_and_rolled(filled, tmp_path / "t-0")
    (tmp_path / "t-0" / f"{cut_base:020}.log").write_bytes(before[f"{cut_base:020}.log"])
    log = reopened(tmp_path, clock, recovery_point=cut_base)
    assert log.log_end_offset == cut_base + 1
    assert log.epochs.entries == ((0, 0), (1, 12))


def test_a_log_ends_with_the_segment_that_reaches_into_the_next_one(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    records_before = contents(filled)
    _, before, (cut_base, last_base) = truncated_and_rolled(filled, tmp_path / "t-0")
    for name in (f"{cut_base:020}.log", "leader-epoch-checkpoint"):
        (tmp_path / "t-0" / name).write_bytes(before[name])
    assert last_base < 24
    log = reopened(tmp_path, clock, recovery_point=cut_base)
    assert contents(log) == records_before
    assert [segment.base_offset for segment in log.segments][-1] == cut_base


def test_a_segment_whose_indexes_are_written_again_is_flushed_with_the_next_flush(
    filled: PartitionLog, tmp_path: Path, clock: ManualClock
) -> None:
    last_base = [segment.base_offset for segment in filled.segments][-1]
    log = reopened(tmp_path, clock, recovery_point=24)
    assert (log.log_end_offset, log.recovery_point) == (24, last_base)
    assert reopened(tmp_path, clock, clean=True).recovery_point == 24
