import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.log import leader_epoch_cache as leader_epochs
from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log
from barnabas.log.local_log import Flushed
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.errors import ErrorCode, KafkaError

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]


def is_due(log: PartitionLog, now_ms: int) -> bool:
    return log.local.flush_due(now_ms, log.log_end_offset, log.config.flush_ms)


def test_a_thread_may_flush_while_the_log_is_appended_to(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(segment_bytes=2_000)
    stop = threading.Event()
    points: list[int] = []

    def flush_until_stopped() -> None:
        while not stop.is_set():
            points.append(log.flush())

    thread = threading.Thread(target=flush_until_stopped)
    thread.start()
    try:
        for index in range(300):
            produce(log, b"x" * 50, epoch=index // 50)
            for path in log.delete_old_segments(log.clock.wall_ms()):
                path.unlink()
    finally:
        stop.set()
        thread.join()
    assert points == sorted(points)
    assert log.flush() == 300


def test_a_rolled_segment_is_due_for_a_flush_whatever_the_configs(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log()
    produce(log, b"a")
    assert not is_due(log, 1 << 60)
    log.roll()
    assert is_due(log, 0)
    log.flush()
    produce(log, b"b")
    assert not is_due(log, 1 << 60)


def test_the_indexes_of_a_rolled_segment_are_flushed_also_if_its_records_were_before(
    open_log: OpenLog, produce: Produce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    produce(log, b"a")
    log.flush()
    log.roll()
    assert is_due(log, 0)
    synced: list[Path] = []
    monkeypatch.setattr("barnabas.base.disk.sync_path", synced.append)
    log.flush()
    assert tmp_path / "t-0" / f"{0:020d}.timeindex" in synced
    assert not is_due(log, 0)
    synced.clear()
    log.flush()
    assert synced == []


def test_after_a_failed_flush_no_other_succeeds_or_is_due(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(flush_ms=0)
    produce(log, b"a")

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", broken)
        with pytest.raises(OSError, match="Input/output error") as error:
            log.flush()
    log.take_offline(error.value)
    assert not is_due(log, 1 << 60)
    with pytest.raises(OSError, match="the disk of"):
        log.flush()
    assert log.recovery_point == 0


@pytest.mark.parametrize(("number", "remains"), [(errno.EMFILE, True), (errno.EIO, False)])
def test_a_read_that_finds_no_descriptor_leaves_the_log_online(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch, number: int, remains: bool
) -> None:
    log = open_log()
    produce(log, b"a")

    def failing(*_: object) -> bytes:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("os.pread", failing)
        with pytest.raises(KafkaError) as error:
            log.read(0, 1 << 20, 1)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.failure is None) is remains


def test_the_first_flush_includes_the_topic_id(
    open_log: OpenLog, produce: Produce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(topic_id=bytes(range(16)))
    produce(log, b"a")
    synced: list[Path] = []
    monkeypatch.setattr("barnabas.base.disk.sync_path", synced.append)
    log.flush()
    assert tmp_path / "t-0" / "partition.metadata" in synced
    synced.clear()
    produce(log, b"b")
    log.flush()
    assert tmp_path / "t-0" / "partition.metadata" not in synced


def test_a_snapshot_is_taken_at_every_roll_and_at_the_end(
    open_log: OpenLog, produce: Produce, tmp_path: Path
) -> None:
    log = open_log()
    produce(log, b"a")
    log.roll()
    produce(log, b"b", b"c")
    close_log(log)
    names = sorted(path.name for path in (tmp_path / "t-0").glob("*.snapshot"))
    assert names == [f"{1:020d}.snapshot", f"{3:020d}.snapshot"]


def test_snapshots_are_deleted_with_their_segments(
    open_log: OpenLog, produce: Produce, tmp_path: Path
) -> None:
    log = open_log()
    for value in (b"a", b"b", b"c"):
        produce(log, value)
        log.roll()
    log.increment_log_start_offset(2)
    removed = {path.name for path in log.delete_old_segments(0)}
    assert f"{1:020d}.snapshot.deleted" in removed
    assert [path.name for path in sorted((tmp_path / "t-0").glob("*.snapshot"))] == [
        f"{2:020d}.snapshot",
        f"{3:020d}.snapshot",
    ]


def test_truncation_removes_later_batches_from_producer_state(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    options = {"producer_id": 7, "producer_epoch": 0}
    for sequence in range(6):
        produce(log, b"x", base_sequence=sequence, **options)
        if sequence == 2:
            log.roll()
    log.truncate_to(5)
    assert log.producers.states.active[0].last_sequence == 4
    assert produce(log, b"x", base_sequence=5, **options).first_offset == 5
    log.truncate_to(2)
    assert log.producers.states.active[0].last_sequence == 1
    log.truncate_fully_and_start_at(0)
    assert log.producers.states.active == []


def test_producers_expire_by_the_given_time(open_log: OpenLog, produce: Produce) -> None:
    log = open_log()
    produce(log, b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    now_ms = log.clock.wall_ms()
    log.producers.states.remove_expired(now_ms + 999, 1_000)
    assert len(log.producers.states.active) == 1
    log.producers.states.remove_expired(now_ms + 1_000, 1_000)
    assert log.producers.states.active == []


def test_a_log_keeps_its_topic_id(open_log: OpenLog) -> None:
    assert open_log(topic_id=bytes(range(16))).topic_id == bytes(range(16))
    log = open_log()
    assert log.topic_id == bytes(range(16))
    with pytest.raises(AssertionError):
        log.set_topic_id(bytes(16))


def test_an_abandoned_log_writes_nothing(open_log: OpenLog, produce: Produce, tmp_path: Path) -> None:
    log = open_log()
    produce(log, b"x")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()}
    log.local.abandon()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "t-0").iterdir()} == before


@pytest.mark.parametrize("finish", [PartitionLog.roll, close_log])
def test_indexes_are_on_disk_once_a_segment_is_done(
    open_log: OpenLog, produce: Produce, tmp_path: Path, finish: Callable[[PartitionLog], None]
) -> None:
    log = open_log(index_interval_bytes=0)
    for index in range(3):
        produce(log, b"x", timestamp_ms=1_000 + index)
    finish(log)
    assert (tmp_path / "t-0" / f"{0:020d}.index").stat().st_size == 16
    assert (tmp_path / "t-0" / f"{0:020d}.timeindex").stat().st_size == 24


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.increment_log_start_offset(2),
        lambda log: log.truncate_to(2),
        lambda log: log.truncate_fully_and_start_at(9),
    ],
)
def test_epochs_that_cannot_be_written_take_the_log_offline(
    open_log: OpenLog,
    produce: Produce,
    change: Callable[[PartitionLog], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = open_log()
    for epoch in range(4):
        produce(log, b"a", epoch=epoch)
    log.update_high_watermark(4)
    failures: list[OSError] = []
    log.local.on_failure = failures.append

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(leader_epochs, "write_checkpoint", full)
    with pytest.raises(KafkaError, match="No space left") as raised:
        change(log)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(failures) == 1


@pytest.mark.parametrize("offset", [0, 1])
def test_a_flush_that_begins_during_a_truncation_does_not_cover_what_is_written_afterwards(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    log = open_log()
    produce(log, b"a", b"b")
    produce(log, b"c")
    flushed: list[Flushed] = []
    for name in ("truncate_to", "start_at"):
        remove = getattr(log.local, name)

        def remove_and_flush(*arguments: Any, remove: Any = remove) -> Any:
            removed = remove(*arguments)
            flushed.append(log.sync())  # in the thread of the flusher
            return removed

        monkeypatch.setattr(log.local, name, remove_and_flush)
    if offset:
        log.truncate_to(2)
    else:
        log.truncate_fully_and_start_at(0)
    produce(log, b"d", b"e", b"f")
    log.mark_flushed(flushed[0])
    assert log.recovery_point == 0
