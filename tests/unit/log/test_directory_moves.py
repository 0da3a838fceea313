"""Future replicas in the log manager: created, promoted, deleted, and found again at startup."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.append_info import AppendInfo
from barnabas.log.copied_state import copy_state
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import fits_future_directory, future_directory, has_move_mark, parse_future
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog

Produce = Callable[..., AppendInfo]
Open = Callable[[], LogManager]
TOPIC_ID = bytes(range(16))
T0 = TopicPartition("t", 0)


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    """Open directories a and b."""
    running: list[LogManager] = []

    def open_() -> LogManager:
        for previous in running:
            for directory in previous.directories:
                directory.unlock()
        paths = [tmp_path / name for name in "ab"]
        log_manager = LogManager.open(paths, cluster_id="c", node_id=1, clock=clock, random=Random(0))
        log_manager.load(lambda topic: LogConfig(file_delete_delay_ms=0))
        running.append(log_manager)
        return log_manager

    yield open_
    for directory in running[-1].directories:
        directory.unlock()


@pytest.fixture
def moving(opened: Open, produce: Produce) -> LogManager:
    """t-0 is in a with three records; its future replica is in b with two of them."""
    log_manager = opened()
    log = log_manager.create("t", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    for value in (b"1", b"2", b"3"):
        produce(log, value)
    future = log_manager.create_future(T0, log_manager.directories[1])
    future.append_copied(log.read(0, 1 << 20, 2).data)
    return log_manager


def kinds(root: Path) -> dict[str, list[str]]:
    """Return the kinds of t-0's directories in each log directory."""

    def kind(path: Path) -> str:
        return path.name.rpartition("-")[2] if "." in path.name else "log"

    return {name: [kind(path) for path in sorted((root / name).glob("t-0*"))] for name in "ab"}


def promote(log_manager: LogManager) -> PartitionLog:
    source = log_manager.logs[T0]
    future = log_manager.futures[T0]
    future.append_copied(source.read(2, 1 << 20, 3).data)
    copy_state(source, future)
    return log_manager.replace_current_with_future(T0)


def test_future_directories_have_kafkas_names_with_the_partition() -> None:
    name = future_directory(TopicPartition("a.b-c", 17), Random(0))
    assert len(name) == len("a.b-c-17.") + 32 + len("-future")
    assert parse_future(name) == TopicPartition("a.b-c", 17)
    assert parse_future("a-1.x-delete") is None
    assert fits_future_directory(TopicPartition("x" * 213, 9))
    assert not fits_future_directory(TopicPartition("x" * 213, 10))


def test_a_future_replica_is_promoted_and_then_the_old_log_is_deleted(
    moving: LogManager, tmp_path: Path, clock: ManualClock
) -> None:
    old = moving.logs[T0]
    new = promote(moving)
    assert moving.logs[T0] is new
    assert moving.is_retired(old)
    assert not moving.is_retired(new)
    assert kinds(tmp_path) == {"a": ["log"], "b": ["log"]}
    moving.finish_replacement(T0)
    moving.deletions.remove_due(clock.monotonic_ms())
    assert kinds(tmp_path) == {"a": [], "b": ["log"]}
    assert moving.directories[1].logs == {T0: new}


def test_a_moved_log_keeps_its_gap_and_where_it_left_the_trash(moving: LogManager) -> None:
    moving.logs[T0].gap_offset, moving.logs[T0].left_trash_at = 1, 2
    new = promote(moving)
    assert (new.gap_offset, new.left_trash_at) == (1, 2)


def test_the_moved_log_is_still_known_if_the_old_one_cannot_be_removed(
    moving: LogManager, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(moving)
    with monkeypatch.context() as read_only:
        read_only.setattr(disk, "rename", broken)
        moving.finish_replacement(T0)
        moving.remove_marks([moving.logs[T0]])
    assert moving.directories[0].failure is not None
    again = opened()
    assert again.logs[T0].directory == tmp_path / "b" / "t-0"
    assert kinds(tmp_path) == {"a": ["delete"], "b": ["log"]}
    assert not has_move_mark(tmp_path / "b" / "t-0")


def test_a_start_keeps_the_mark_if_the_old_log_cannot_be_removed(
    moving: LogManager, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(moving)
    with monkeypatch.context() as read_only:
        read_only.setattr(disk, "rename", broken)
        assert opened().directories[0].failure is not None
    assert has_move_mark(tmp_path / "b" / "t-0")
    assert opened().logs[T0].directory == tmp_path / "b" / "t-0"


def broken(*_: object) -> None:
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize("restarted", [False, True])
def test_the_mark_is_removed_when_the_removal_of_the_old_log_is_flushed(
    moving: LogManager, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    promote(moving)
    story: list[str] = []

    def recorded(name: str) -> None:
        work = getattr(disk, name)

        def record(path: Path, *rest: Path) -> Path | None:
            story.append(f"{name} {path.relative_to(tmp_path)}")
            return work(path, *rest)  # type: ignore[no-any-return]

        monkeypatch.setattr(disk, name, record)

    for name in ("rename", "sync_path", "remove_file"):
        recorded(name)
    if restarted:
        opened()
    else:
        moving.finish_replacement(T0)
        moving.remove_marks([moving.logs[T0]])
    assert kinds(tmp_path) == {"a": ["delete"], "b": ["log"]}
    renamed, removed = story.index("rename a/t-0"), story.index("remove_file b/t-0/replica-move")
    assert "sync_path a" in story[renamed:removed]


def test_the_producer_snapshot_is_flushed_before_the_old_log_is_deleted(
    moving: LogManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = promote(moving)
    synced: list[Path] = []
    monkeypatch.setattr("barnabas.base.disk.sync_path", synced.append)
    new.flush()
    snapshot = tmp_path / "b" / "t-0" / f"{3:020d}.snapshot"
    assert snapshot.exists()
    assert snapshot in synced


def test_deletion_between_promotion_and_its_completion_removes_both_logs(
    moving: LogManager, tmp_path: Path, clock: ManualClock
) -> None:
    promote(moving)
    moving.schedule_deletion(T0)
    moving.deletions.remove_due(clock.monotonic_ms())
    assert kinds(tmp_path) == {"a": [], "b": []}


def test_checkpoints_contain_the_current_and_the_future_log(moving: LogManager, tmp_path: Path) -> None:
    moving.futures[T0].flush()
    moving.checkpoint()
    points = [(tmp_path / name / "recovery-point-offset-checkpoint").read_text() for name in "ab"]
    assert points == ["0\n1\nt 0 0\n", "0\n1\nt 0 2\n"]
    assert (tmp_path / "b" / "replication-offset-checkpoint").exists()


def test_a_move_continues_without_recovery_after_a_clean_shutdown(moving: LogManager, opened: Open) -> None:
    moving.close()
    again = opened()
    assert again.futures[T0].recovery_point == again.futures[T0].log_end_offset == 2
    assert again.future_directory_of(T0) is again.directories[1]
    assert promote(again).log_end_offset == 3


def test_a_future_replica_without_a_current_log_becomes_the_log(
    moving: LogManager, opened: Open, tmp_path: Path
) -> None:
    moving.close()
    (tmp_path / "a" / "t-0").rename(tmp_path / "removed")
    again = opened()
    assert again.logs[T0].log_end_offset == 2
    assert kinds(tmp_path) == {"a": [], "b": ["log"]}
    assert dict(again.futures) == {}


def test_a_future_replica_whose_log_may_be_offline_is_left_unchanged(
    moving: LogManager, opened: Open, tmp_path: Path
) -> None:
    moving.close()
    metadata = tmp_path / "a" / "t-0" / "partition.metadata"
    valid = metadata.read_text()
    metadata.write_text("nonsense")
    again = opened()
    assert again.directories[0].failure is not None
    assert (dict(again.logs), dict(again.futures)) == ({}, {})
    assert kinds(tmp_path) == {"a": ["log"], "b": ["future"]}
    metadata.write_text(valid)
    assert opened().futures[T0].log_end_offset == 2


def test_another_topics_future_replica_becomes_a_stray(
    moving: LogManager, opened: Open, tmp_path: Path
) -> None:
    moving.close()
    [future] = (tmp_path / "b").glob("t-0.*-future")
    other = (tmp_path / "a" / "t-0" / "partition.metadata").read_text().replace("AAECAw", "BBECAw")
    (future / "partition.metadata").write_text(other)
    again = opened()
    assert dict(again.futures) == {}
    assert kinds(tmp_path) == {"a": ["log"], "b": ["stray"]}


def test_a_failing_disk_takes_its_future_replicas_offline(moving: LogManager) -> None:
    moving.fail_future_directory(T0, OSError(5, "Input/output error"))
    assert moving.futures[T0].failure is not None
    assert moving.logs[T0].failure is None
    assert moving.directories[1].failure is not None


def test_the_oldest_preferred_directory_is_dropped_above_the_limit(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.log.log_manager._PREFERRED_COUNT_MAX", 2)
    log_manager = opened()
    first, second = log_manager.directories
    for index in range(3):
        log_manager.prefer(TopicPartition("t", index), second)
    homes = []
    for index in range(3):
        log_manager.create("t", index, TOPIC_ID, LogConfig())
        homes.append(log_manager.directory_of(TopicPartition("t", index)))
    assert homes == [first, second, second]
