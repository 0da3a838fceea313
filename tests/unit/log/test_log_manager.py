import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.append_info import AppendInfo
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.log.segments.open_files import OpenFiles
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.record import Record, encode_batch

Produce = Callable[..., AppendInfo]
OpenAll = Callable[..., LogManager]
TOPIC_ID = bytes(range(16))


@pytest.fixture
def open_all(tmp_path: Path, clock: ManualClock) -> Iterator[OpenAll]:
    opened: list[LogManager] = []

    def open_(*names: str, load: bool = True) -> LogManager:
        paths = [tmp_path / name for name in names or ("a", "b")]
        log_manager = LogManager.open(paths, cluster_id="c", node_id=1, clock=clock, random=Random(0))
        opened.append(log_manager)
        if load:
            log_manager.load(lambda topic: LogConfig())
        return log_manager

    yield open_
    kill(*opened)


def kill(*opened: LogManager) -> None:
    """End the process without a shutdown: release the locks, write nothing."""
    for log_manager in opened:
        for directory in log_manager.directories:
            directory.unlock()


def name(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


def test_a_new_log_has_two_files_and_stays_open(open_all: OpenAll, tmp_path: Path) -> None:
    log_manager = open_all("a")
    log_manager.create("t", 0, TOPIC_ID, LogConfig())
    files = {path.name for path in (tmp_path / "a" / "t-0").iterdir()}
    assert files == {f"{0:020d}.log", "partition.metadata"}
    assert len(log_manager.open_files) == 1


def test_new_logs_do_not_close_the_files_of_one_that_is_in_use(open_all: OpenAll) -> None:
    log_manager = open_all("a")
    log_manager.open_files = OpenFiles(2)
    used = log_manager.create("t", 0, TOPIC_ID, LogConfig())
    for partition in range(1, 4):
        used.append_as_leader(memoryview(encode_batch([Record(0, 0, b"k", b"v")])), 0)
        log_manager.create("t", partition, TOPIC_ID, LogConfig())
        assert used.segments.active.is_open


def test_logs_are_spread_over_the_directories(open_all: OpenAll, tmp_path: Path) -> None:
    log_manager = open_all()
    for partition in range(5):
        log_manager.create("t", partition, TOPIC_ID, LogConfig())
    assert sorted(path.name for path in (tmp_path / "a").glob("t-*")) == ["t-0", "t-2", "t-4"]
    assert sorted(path.name for path in (tmp_path / "b").glob("t-*")) == ["t-1", "t-3"]
    assert set(log_manager.logs) == {name(partition) for partition in range(5)}
    home = log_manager.directory_of(name(3))
    assert home is not None
    assert home.path == tmp_path / "b"
    assert log_manager.get(name(9)) is None


@pytest.mark.parametrize("seed", range(5))
def test_logs_work_when_there_are_more_of_them_than_open_files(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("barnabas.log.log_manager.OPEN_SEGMENTS_MAX", 4)
    log_manager, random = open_all("a"), Random(seed)
    produced: dict[TopicPartition, int] = {}
    for partition in range(20):
        log_manager.create("t", partition, TOPIC_ID, LogConfig())
        produced[name(partition)] = 0
        for _ in range(5):
            chosen = name(random.randrange(partition + 1))
            produce(log_manager.logs[chosen], b"x")
            produced[chosen] += 1
            active = [log.local.segments.active for log in log_manager.logs.values()]
            assert len(log_manager.open_files) == sum(segment.is_open for segment in active) <= 4
    assert not log_manager.any_offline
    assert {each: log.log_end_offset for each, log in log_manager.logs.items()} == produced


@pytest.mark.parametrize("clean", [True, False])
def test_logs_survive_a_restart(open_all: OpenAll, produce: Produce, clean: bool) -> None:
    first = open_all()
    for partition in range(3):
        log = first.create("t", partition, TOPIC_ID, LogConfig())
        for index in range(partition + 2):
            produce(log, b"%d" % index)
        log.increment_log_start_offset(1)
    first.checkpoint()
    if clean:
        first.close()
    kill(first)
    second = open_all()
    for partition in range(3):
        log = second.logs[name(partition)]
        offsets = (log.log_start_offset, log.high_watermark, log.log_end_offset)
        assert offsets == (1, partition + 2, partition + 2)
        assert log.recovery_point == (partition + 2 if clean else 0)
        assert log.topic_id == TOPIC_ID


def test_the_clean_shutdown_marker_is_removed_before_the_first_append(
    open_all: OpenAll, tmp_path: Path
) -> None:
    open_all().close()
    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    again = open_all()
    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists(), "nothing was appended yet"
    again.begin_service()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()


def test_the_removal_of_the_clean_shutdown_marker_is_flushed(
    open_all: OpenAll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_all("a").close()
    synced: list[Path] = []
    monkeypatch.setattr("barnabas.base.disk.sync_path", synced.append)
    open_all("a").begin_service()
    assert synced == [tmp_path / "a"]


def test_a_clean_shutdown_marker_that_cannot_be_removed_takes_its_directory_offline(
    open_all: OpenAll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_all().close()
    again = open_all()

    def remove_file(path: Path) -> None:
        if path.parent.name == "a":
            raise OSError(30, "Read-only file system")

    monkeypatch.setattr(disk, "remove_file", remove_file)
    again.begin_service()
    assert [directory.failure is None for directory in again.directories] == [False, True]


def test_checkpoints_have_kafkas_format(open_all: OpenAll, produce: Produce, tmp_path: Path) -> None:
    log_manager = open_all("a")
    log = log_manager.create("t", 0, TOPIC_ID, LogConfig())
    log_manager.create("t", 1, TOPIC_ID, LogConfig())
    produce(log, b"a", b"b")
    log.increment_log_start_offset(1)
    log.flush()
    log.cleaner_offset = 1
    log_manager.checkpoint()
    texts = {path.name: path.read_text() for path in (tmp_path / "a").glob("*-checkpoint")}
    assert texts == {
        "recovery-point-offset-checkpoint": "0\n2\nt 0 2\nt 1 0\n",
        "log-start-offset-checkpoint": "0\n1\nt 0 1\n",
        "replication-offset-checkpoint": "0\n2\nt 0 2\nt 1 0\n",
        "cleaner-offset-checkpoint": "0\n1\nt 0 1\n",
    }


def test_a_checkpoint_is_only_written_when_its_offsets_have_changed(
    open_all: OpenAll, produce: Produce, tmp_path: Path
) -> None:
    def written() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in (tmp_path / "a").glob("*-checkpoint")}

    log_manager = open_all("a")
    log = log_manager.create("t", 0, TOPIC_ID, LogConfig())
    log_manager.checkpoint()
    before = written()
    log_manager.checkpoint()
    assert written() == before
    produce(log, b"a")
    log.flush()
    log_manager.checkpoint()
    changed = {name for name, inode in written().items() if inode != before[name]}
    assert changed == {"recovery-point-offset-checkpoint", "replication-offset-checkpoint"}


def test_a_checkpoint_has_the_revision_of_the_metadata_if_it_is_known(
    open_all: OpenAll, tmp_path: Path
) -> None:
    log_manager = open_all("a", "b")
    directory, _ = log_manager.directories
    log_manager.checkpoint()
    assert directory.read_metadata_revision() == -1
    log_manager.metadata_revision = lambda: 7
    log_manager.checkpoint()
    assert [each.read_metadata_revision() for each in log_manager.directories] == [7, 7]
    (tmp_path / "a" / "metadata-revision-checkpoint").write_text("0\n1\nseven\n")
    assert directory.read_metadata_revision() == -1


def test_a_directory_in_use_is_rejected_and_the_others_are_unlocked(open_all: OpenAll) -> None:
    open_all("b")
    with pytest.raises(LogDirectoryError, match="in use"):
        open_all("a", "b")
    open_all("a")


def test_deletion_renames_immediately_and_removes_later(
    open_all: OpenAll, produce: Produce, clock: ManualClock, tmp_path: Path
) -> None:
    log_manager = open_all("a")
    log = log_manager.create("t", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=500))
    produce(log, b"a")
    log_manager.schedule_deletion(name(0))
    assert log_manager.get(name(0)) is None
    (renamed,) = (tmp_path / "a").glob("t-0.*-delete")
    with pytest.raises(KafkaError, match="t-0 is deleted") as error:
        log.read(0, 1, 1)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log_manager.deletions.remove_due(clock.monotonic_ms() + 499) == 0
    assert renamed.exists()
    assert log_manager.deletions.remove_due(clock.monotonic_ms() + 500) == 1
    assert not renamed.exists()
    assert log_manager.create("t", 0, TOPIC_ID, LogConfig()).log_end_offset == 0


def test_an_interrupted_deletion_is_completed_at_startup(open_all: OpenAll, tmp_path: Path) -> None:
    log_manager = open_all("a")
    log_manager.create("t", 0, TOPIC_ID, LogConfig())
    log_manager.schedule_deletion(name(0))
    kill(log_manager)
    assert list((tmp_path / "a").glob("*-delete"))
    assert dict(open_all("a").logs) == {}
    assert not list((tmp_path / "a").glob("t-*"))


def test_strays_are_renamed_and_not_deleted(open_all: OpenAll, produce: Produce, tmp_path: Path) -> None:
    log_manager = open_all("a")
    produce(log_manager.create("t", 0, TOPIC_ID, LogConfig()), b"a")
    log_manager.rename_stray(name(0))
    log_manager.close()
    again = open_all("a")
    assert dict(again.logs) == {}
    (stray,) = (tmp_path / "a").glob("t-0.*-stray")
    assert (stray / f"{0:020d}.log").stat().st_size > 0


def test_the_same_partition_in_two_directories_is_rejected(open_all: OpenAll, tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / directory / "t-0").mkdir(parents=True)
    with pytest.raises(LogDirectoryError, match=r"t-0 exists in .*a and in .*b"):
        open_all()


def test_a_failing_disk_takes_its_directory_offline_and_no_other(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_manager = open_all()
    logs = [log_manager.create("t", partition, TOPIC_ID, LogConfig()) for partition in range(4)]
    offline: list[Path] = []
    log_manager.on_directory_failure = lambda directory: offline.append(directory.path)

    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("barnabas.base.disk.write_at", broken)
        for log in (logs[0], logs[2]):
            with pytest.raises(KafkaError) as error:
                produce(log, b"x")
            assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [path.name for path in offline] == ["a"]
    with pytest.raises(KafkaError, match="Input/output error"):
        logs[2].read(0, 1, 0)
    assert produce(logs[1], b"x").first_offset == 0
    created = log_manager.create("t", 9, TOPIC_ID, LogConfig())
    assert created.directory.parent.name == "b"
    log_manager.checkpoint()
    log_manager.close()
    assert not (offline[0] / ".kafka_cleanshutdown").exists()
    assert (created.directory.parent / ".kafka_cleanshutdown").exists()


def test_a_log_that_cannot_be_loaded_takes_its_directory_offline(open_all: OpenAll, tmp_path: Path) -> None:
    first = open_all()
    for partition in range(2):
        first.create("t", partition, TOPIC_ID, LogConfig())
    first.close()
    (tmp_path / "a" / "t-0" / "partition.metadata").write_text("nonsense")
    second = open_all()
    assert set(second.logs) == {name(1)}
    assert second.any_offline
    assert not first.any_offline
    failure = second.directories[0].failure
    assert failure is not None
    assert "t-0" in failure


def test_all_failures_are_reported_when_every_directory_fails_at_startup(
    open_all: OpenAll, tmp_path: Path
) -> None:
    first = open_all("a")
    first.create("t", 0, TOPIC_ID, LogConfig())
    first.close()
    (tmp_path / "a" / "t-0" / "partition.metadata").write_text("nonsense")
    with pytest.raises(
        LogDirectoryError, match=r"all log directories failed: .*/a: t-0: .*partition\.metadata"
    ):
        open_all("a")


@pytest.mark.parametrize("content", [b"", bytes(40)])
def test_a_topic_id_file_emptied_by_a_power_failure_means_no_topic_id(
    open_all: OpenAll, tmp_path: Path, content: bytes
) -> None:
    first = open_all("a")
    first.create("t", 0, TOPIC_ID, LogConfig())
    kill(first)
    (tmp_path / "a" / "t-0" / "partition.metadata").write_bytes(content)
    [log] = open_all("a").logs.values()
    assert log.topic_id is None


def test_no_log_can_be_created_when_all_directories_are_offline(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_manager = open_all("a")
    log = log_manager.create("t", 0, TOPIC_ID, LogConfig())
    with monkeypatch.context() as patch:
        patch.setattr("barnabas.base.disk.write_at", lambda *_: 0)
        with pytest.raises(KafkaError):
            produce(log, b"x")
    with pytest.raises(KafkaError, match="all log directories are offline") as error:
        log_manager.create("t", 1, TOPIC_ID, LogConfig())
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_file_with_the_name_of_a_log_takes_the_directory_offline(open_all: OpenAll, tmp_path: Path) -> None:
    log_manager = open_all("a")
    (tmp_path / "a" / "t-0").touch()
    with pytest.raises(KafkaError, match="cannot create t-0") as error:
        log_manager.create("t", 0, TOPIC_ID, LogConfig())
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_many_idle_logs_keep_few_files_open(open_all: OpenAll, produce: Produce) -> None:
    log_manager = open_all("a")
    log_manager.open_files._count_max = 8
    logs = [log_manager.create("t", partition, TOPIC_ID, LogConfig()) for partition in range(40)]
    for _ in range(3):
        for log in logs:
            produce(log, b"x")
    assert sum(segment._fd >= 0 for log in logs for segment in log.segments) <= 8
    assert all(log.read(0, 1000, 3).size_bytes > 0 for log in logs)


def test_a_log_whose_files_cannot_be_closed_for_another_log_goes_offline(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_manager = open_all()
    log_manager.open_files._count_max = 1
    config = LogConfig(index_interval_bytes=0)
    old, new = (log_manager.create("t", partition, TOPIC_ID, config) for partition in range(2))
    produce(old, b"x")
    produce(old, b"y")
    old.segments.active.recently_used = False

    write_file = disk.write_file

    def full(path: Path, data: bytes, *, sync: bool = False) -> None:
        if path.suffix != ".index":
            return write_file(path, data, sync=sync)
        raise OSError(28, "No space content on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write_file", full)
        assert produce(new, b"y").first_offset == 0
    assert old.failure is not None
    assert "No space content" in old.failure
    assert new.failure is None
    assert [directory.failure is None for directory in log_manager.directories] == [False, True]
    assert old.segments.active._fd == -1


def test_a_recreated_topic_does_not_start_at_the_offset_of_the_deleted_one(
    open_all: OpenAll, produce: Produce
) -> None:
    logs = open_all("a")
    log = logs.create("t", 0, TOPIC_ID, LogConfig())
    for _ in range(10):
        produce(log, b"x")
    log.update_high_watermark(10)
    log.increment_log_start_offset(10)
    logs.checkpoint()
    logs.schedule_deletion(TopicPartition("t", 0))
    produce(logs.create("t", 0, TOPIC_ID, LogConfig()), b"acknowledged")
    kill(logs)
    again = open_all("a").logs[TopicPartition("t", 0)]
    assert (again.log_start_offset, again.log_end_offset) == (0, 1)


@pytest.mark.parametrize("is_supported", [True, False])
def test_many_logs_are_shut_down_cleanly_with_or_without_syncfs(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch, is_supported: bool
) -> None:
    flushed: list[Path] = []

    def flush(path: Path) -> bool:
        flushed.append(path)
        return is_supported

    monkeypatch.setattr("barnabas.log.closing._SYNCED_ALONE_COUNT_MAX", 3)
    monkeypatch.setattr("barnabas.base.disk.sync_file_system", flush)
    first = open_all()
    for partition in range(12):
        produce(first.create("t", partition, TOPIC_ID, LogConfig()), b"x")
    first.close()
    assert flushed == [directory.path for directory in first.directories]
    second = open_all()
    assert [log.recovery_point for log in second.logs.values()] == [1] * 12
    second.close()
    assert len(flushed) == 2, "nothing to flush the second time"


def test_a_file_system_that_cannot_be_flushed_is_not_marked_as_cleanly_shut_down(
    open_all: OpenAll, produce: Produce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(path: Path) -> bool:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr("barnabas.log.closing._SYNCED_ALONE_COUNT_MAX", 0)
    monkeypatch.setattr("barnabas.base.disk.sync_file_system", broken)
    log_manager = open_all("a")
    produce(log_manager.create("t", 0, TOPIC_ID, LogConfig()), b"x")
    log_manager.close()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("number", "is_advised"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False)]
)
def test_a_full_volume_is_logged_with_advice(
    open_all: OpenAll, capsys: pytest.CaptureFixture[str], number: int, is_advised: bool
) -> None:
    log_manager = open_all()
    log_manager.fail(log_manager.directories[0], OSError(number, os.strerror(number)))
    assert ("docs/operations.md" in capsys.readouterr().err) == is_advised
