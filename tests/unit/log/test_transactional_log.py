"""Transactions in a log: last stable offset, aborted transactions, and both after a crash."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.log import open_log as opening
from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.control import EndTransactionMarker, read_end_marker

OpenLog = Callable[..., PartitionLog]
MakeBatch = Callable[..., memoryview]
Produce = Callable[..., AppendInfo]


@pytest.fixture
def write(make_batch: MakeBatch) -> Callable[..., AppendInfo]:
    """Append one batch of a producer's transaction and raise the high watermark."""

    def append(
        log: PartitionLog, producer_id: int, *values: bytes, sequence: int = 0, epoch: int = 0
    ) -> AppendInfo:
        verification = log.producers.start_verification(producer_id, epoch, sequence, bumps_epochs=False)
        batch = make_batch(
            *values,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        info = log.append_as_leader(batch, 0, verification=verification)
        log.update_high_watermark(log.log_end_offset)
        return info

    return append


Write = Callable[..., AppendInfo]


def end(
    log: PartitionLog, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0
) -> AppendInfo:
    marker = EndTransactionMarker(producer_id, epoch, coordinator_epoch, commit, 1_000)
    info = log.append_transaction_marker(marker, 0)
    log.update_high_watermark(log.log_end_offset)
    return info


def aborted(log: PartitionLog, start: int, max_bytes: int = 1 << 20) -> list[AbortedTransaction]:
    log_slice = log.read(start, max_bytes, log.last_stable_offset, min_one_batch=True)
    return log.producers.aborted_transactions(start, log_slice, log.log_end_offset)


def test_the_last_stable_offset_stays_at_the_first_open_transaction(
    open_log: OpenLog, write: Write, produce: Produce
) -> None:
    log = open_log()
    seen = []
    produce(log, b"a")
    for step in (
        lambda: write(log, 1, b"b"),
        lambda: write(log, 2, b"c"),
        lambda: produce(log, b"d"),
        lambda: end(log, 1, commit=True),
        lambda: end(log, 2, commit=False),
    ):
        step()
        seen.append((log.last_stable_offset, log.high_watermark))
    assert seen == [(1, 2), (1, 3), (1, 4), (2, 5), (6, 6)]


def test_a_marker_contains_producer_epoch_and_coordinator_epoch(open_log: OpenLog, write: Write) -> None:
    log = open_log()
    write(log, 7, b"a", epoch=3)
    info = end(log, 7, commit=False, epoch=3, coordinator_epoch=5)
    assert (info.first_offset, info.last_offset, info.duplicate) == (1, 1, False)
    data = log.read(1, 1000, 2).data
    header = read_header(data)
    assert (header.base_offset, header.partition_leader_epoch) == (1, 0)
    assert read_end_marker(data, 0, header) == EndTransactionMarker(7, 3, 5, False, 1_000)
    (producer,) = log.producers.states.active
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (5, -1)


def test_a_rejected_marker_is_not_appended(open_log: OpenLog, write: Write) -> None:
    log = open_log()
    write(log, 7, b"a", epoch=3)
    with pytest.raises(KafkaError) as error:
        end(log, 7, commit=True, epoch=2)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)


def test_markers_get_the_brokers_time_in_topics_with_log_append_time(open_log: OpenLog, write: Write) -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    write(log, 7, b"a")
    info = end(log, 7, commit=True)
    header = read_header(log.read(1, 1000, 2).data)
    assert header.is_log_append_time
    assert header.max_timestamp == info.log_append_time_ms > 1_000


def test_a_marker_moves_the_last_stable_offset_once_replicated(open_log: OpenLog, write: Write) -> None:
    log = open_log()
    write(log, 1, b"a")
    log.append_transaction_marker(EndTransactionMarker(1, 0, 0, True, 5), 0)
    assert log.last_stable_offset == 0
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2


def test_the_last_stable_offset_is_at_the_batch_of_the_log_start_within_an_open_transaction(
    open_log: OpenLog, write: Write
) -> None:
    log = open_log()
    write(log, 1, b"a")
    write(log, 1, b"b", b"c", sequence=1)
    seen = [log.last_stable_offset]
    for start in (1, 2, 3):
        log.increment_log_start_offset(start)
        seen.append(log.last_stable_offset)
    assert seen == [0, 1, 1, 3]


def test_an_unverified_transaction_is_rejected_unless_verification_is_disabled(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    batch = make_batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    with pytest.raises(KafkaError) as error:
        open_log().append_as_leader(batch, 0)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    assert open_log(verifies_transactions=False).append_as_leader(batch, 0).first_offset == 0


def test_aborted_transactions_are_found_across_segments(open_log: OpenLog, write: Write) -> None:
    log = open_log(segment_bytes=300)
    for producer_id in (1, 2):
        write(log, producer_id, b"x" * 100)
    for index in range(6):
        write(log, 1, b"x" * 100, sequence=index + 1)
    end(log, 1, commit=False)
    end(log, 2, commit=False)
    assert len(log.segments) > 3
    assert [entry[:3] for entry in aborted(log, 0)] == [(1, 0, 8)]  # one batch is read: no other can be in it
    assert [entry[:3] for entry in aborted(log, 1)] == [(1, 0, 8), (2, 1, 9)]
    assert [entry[:3] for entry in aborted(log, 9)] == [(2, 1, 9)]


def test_the_transaction_index_is_written_at_the_abort_and_deleted_with_its_segment(
    open_log: OpenLog, write: Write, tmp_path: Path
) -> None:
    log = open_log(retention_bytes=0)
    write(log, 1, b"a")
    end(log, 1, commit=True)
    path = tmp_path / "t-0" / f"{0:020d}.txnindex"
    assert not path.exists()
    write(log, 1, b"b", sequence=1)
    end(log, 1, commit=False)
    assert path.stat().st_size == 34
    log.roll()
    removed = log.delete_old_segments(0)
    assert path.with_name(path.name + ".deleted") in removed
    assert not path.exists()


@pytest.mark.parametrize("clean", [False, True])
def test_transactions_and_producers_are_restored_after_a_restart(
    open_log: OpenLog, write: Write, clean: bool
) -> None:
    log = open_log(segment_bytes=400)
    for round_ in range(4):
        for producer_id in (1, 2, 3):
            write(log, producer_id, b"x" * 50, sequence=round_)
        end(log, 1, commit=False)
        end(log, 2, commit=True)
    expected = (log.last_stable_offset, log.producers.states.active, aborted(log, 0), aborted(log, 9))
    end_offset = log.log_end_offset
    if clean:
        close_log(log)
    log = open_log(segment_bytes=400, clean_shutdown=clean, high_watermark=end_offset)
    restored = (log.last_stable_offset, log.producers.states.active, aborted(log, 0), aborted(log, 9))
    assert restored == expected


@pytest.mark.parametrize("damage", ["remove", "tear", "stale"])
def test_recovery_rebuilds_the_transaction_index(
    open_log: OpenLog, write: Write, tmp_path: Path, damage: str
) -> None:
    log = open_log(segment_bytes=400)
    for round_ in range(4):
        for producer_id in (1, 2):
            write(log, producer_id, b"x" * 50, sequence=round_)
        end(log, 1, commit=False)
    before = [segment.transaction_index.entries for segment in log.segments]
    assert len(before) > 2
    for path in (tmp_path / "t-0").glob("*.txnindex"):
        if damage == "remove":
            path.unlink()
        elif damage == "tear":
            path.write_bytes(path.read_bytes()[:-5])
        else:
            path.write_bytes(path.read_bytes() * 2)
    log = open_log(segment_bytes=400)
    assert [segment.transaction_index.entries for segment in log.segments] == before


def test_a_damaged_transaction_index_is_rebuilt_even_after_a_clean_shutdown(
    open_log: OpenLog, write: Write, tmp_path: Path
) -> None:
    log = open_log()
    write(log, 1, b"a")
    end(log, 1, commit=False)
    close_log(log)
    path = tmp_path / "t-0" / f"{0:020d}.txnindex"
    path.write_bytes(b"torn")
    log = open_log(clean_shutdown=True, high_watermark=2)
    assert aborted(log, 0) == [(1, 0, 1, 2)]
    assert path.stat().st_size == 34


def test_truncation_before_the_marker_reopens_the_transaction(open_log: OpenLog, write: Write) -> None:
    log = open_log()
    write(log, 1, b"a")
    end(log, 1, commit=False)
    write(log, 1, b"b", sequence=1)
    end(log, 1, commit=False)
    log.truncate_to(3)
    assert log.last_stable_offset == 2
    assert [entry[:3] for entry in aborted(log, 0)] == [(1, 0, 1)]
    log.truncate_to(1)
    assert log.last_stable_offset == 0
    end(log, 1, commit=True)
    assert aborted(log, 0) == []


def test_a_replicated_copy_has_the_same_transactions_and_producers(
    open_log: OpenLog, write: Write, tmp_path: Path
) -> None:
    log = open_log(segment_bytes=400)
    for round_ in range(3):
        for producer_id in (1, 2):
            write(log, producer_id, b"x" * 50, sequence=round_)
        end(log, 1, commit=False)
    (tmp_path / "copy").mkdir()
    copy = opening.open_log(
        tmp_path / "copy" / "t-0", log.topic_partition, config=log.config, clock=log.clock
    )
    while copy.log_end_offset < log.log_end_offset:
        copy.append_copied(log.read(copy.log_end_offset, 1 << 20, log.log_end_offset).data)
    copy.update_high_watermark(copy.log_end_offset)
    assert copy.last_stable_offset == log.last_stable_offset
    assert copy.producers.states.active == log.producers.states.active
    assert aborted(copy, 0) == aborted(log, 0)
