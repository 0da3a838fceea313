"""Logs of deleted topics: kept, undeleted, purged, and restored after the broker was killed in between."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.log.trash import trash as module
from barnabas.log.trash.state import STATE_FILE
from barnabas.log.trash.trash import reconcile_trash
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.decision import Decision
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.trash import TrashEntry
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_purge, decide_undelete
from barnabas.replication.replica_manager import ReplicaManager
from support.batches import batch, values_of
from support.images import RULES, cluster, new_topic, replayed

PARTITIONS = 3
ALICE = TrashEntry(1_700_000_000_000, "User:alice")


class Killed(BaseException):
    """The process was killed: nothing after this happens."""


class Broker:
    """Broker 1 on two disks; the image represents the store, which survives a kill."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.image = cluster(1)
        self.clock = ManualClock()
        self.start()

    def start(self) -> None:
        self.log_manager = LogManager.open(
            self.paths, cluster_id="c", node_id=1, clock=self.clock, random=random.Random(0)
        )
        gone = {topic.topic_id for topic in self.image.deleted_topics.values()}
        reconcile_trash(self.log_manager, self.image.topic_names, gone)
        self.log_manager.load(lambda topic: LogConfig())
        self.log_manager.begin_service()
        self.replicas = ReplicaManager(1, self.log_manager, lambda topic, own: LogConfig())
        self.replicas.on_deleted = self.expire
        self.replicas.load(self.image)
        self.expire()

    def restart(self, *, kill: bool = True) -> None:
        if kill:
            for directory in self.log_manager.directories:
                directory.unlock()
        else:
            self.log_manager.close()
        self.start()

    def commit(self, decision: Decision[object]) -> None:
        """Commit to the store; then the broker replays it, until it is killed."""
        before, self.image = self.image, replayed(self.image, decision)
        asyncio.run(self.replicas.apply(before, self.image, ChangedKeys(decision.changes)))

    def expire(self) -> None:
        """Remove deleted topics from the store of which no disk has any logs."""
        deleted = self.replicas.deleted_topics()
        if not self.log_manager.any_offline:
            self.image = replayed(self.image, decide_remove_deleted(self.image, deleted, 1))
            self.replicas.mark_reported(deleted)

    def create(self, name: str) -> None:
        rng = random.Random(self.image.revision)
        new = [new_topic(name, PARTITIONS)]
        self.commit(decide_create(self.image, new, RULES, rng, validate_only=False))
        for index in range(PARTITIONS):
            for value in (b"a", b"b", b"c"):
                self.append(name, index, value)

    def append(self, name: str, index: int, value: bytes) -> None:
        log = self.replicas.partition(name, index).log
        log.append_as_leader(memoryview(bytearray(batch(value))), 0)
        log.update_high_watermark(log.log_end_offset)

    def delete(self, name: str) -> None:
        self.commit(decide_delete(self.image, [TopicToDelete(name)], trash=ALICE))

    def undelete(self, name: str, new_name: str | None = None) -> None:
        self.commit(decide_undelete(self.image, TrashedTopicRequest(name), new_name))

    def purge(self, name: str) -> None:
        self.commit(decide_purge(self.image, [TrashedTopicRequest(name)]))

    def values(self, name: str) -> list[list[bytes]]:
        logs = [self.replicas.partition(name, index).log for index in range(PARTITIONS)]
        return [
            values_of(log.read(log.log_start_offset, 1 << 20, log.log_end_offset).data)
            if log.log_start_offset < log.log_end_offset
            else []
            for log in logs
        ]

    def on_disk(self) -> list[str]:
        """Return log directories: partitions by name, others by suffix."""
        found = [path.name for disk in self.paths for path in disk.glob("*-*") if path.is_dir()]
        return sorted(name if "." not in name else name.rpartition("-")[2] for name in found)


ABC = [[b"a", b"b", b"c"]] * PARTITIONS
NAMED = [f"t-{index}" for index in range(PARTITIONS)]
TRASHED = ["stray"] * PARTITIONS


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    broker = Broker([tmp_path / "a", tmp_path / "b"])
    broker.create("t")
    return broker


def test_logs_of_a_deleted_topic_are_renamed_and_others_are_not(broker: Broker) -> None:
    broker.delete("t")
    assert broker.on_disk() == TRASHED
    assert not broker.log_manager.logs
    assert broker.log_manager.delete_due(broker.clock.monotonic_ms() + 10**9) == 0


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("restarts", [(), ("deleted",), ("deleted", "undeleted"), ("undeleted",)])
def test_records_can_be_undeleted_after_restarts(
    broker: Broker, kill: bool, restarts: tuple[str, ...]
) -> None:
    broker.delete("t")
    if "deleted" in restarts:
        broker.restart(kill=kill)
    broker.undelete("t")
    if "undeleted" in restarts:
        broker.restart(kill=kill)
    assert broker.values("t") == ABC
    assert broker.on_disk() == NAMED
    broker.append("t", 0, b"d")
    assert broker.values("t")[0] == [b"a", b"b", b"c", b"d"]


def test_the_log_start_offset_is_kept(broker: Broker) -> None:
    broker.replicas.partition("t", 1).log.increment_log_start_offset(2)
    broker.delete("t")
    broker.restart()
    broker.undelete("t")
    assert broker.values("t") == [ABC[0], [b"c"], ABC[2]]
    broker.restart()
    assert broker.values("t") == [ABC[0], [b"c"], ABC[2]]
    assert not [path for disk in broker.paths for path in disk.glob(f"*/{STATE_FILE}")]


def test_flushed_segments_are_not_recovered_again(broker: Broker) -> None:
    log = broker.replicas.partition("t", 0).log
    log._roll(log.log_end_offset)
    log.flush()
    broker.delete("t")
    broker.undelete("t")
    logs = broker.log_manager.logs
    assert [logs[TopicPartition("t", index)].recovery_point for index in (0, 1)] == [3, 0]


def test_a_state_file_damaged_by_a_power_failure_loses_no_records(broker: Broker) -> None:
    broker.replicas.partition("t", 0).log.flush()
    broker.delete("t")
    [state] = [path for disk in broker.paths for path in disk.glob(f"*/{STATE_FILE}")]
    state.write_bytes(b"\0\0")
    broker.undelete("t")
    assert broker.values("t") == ABC


def test_another_topic_of_the_name_is_independent(broker: Broker) -> None:
    broker.replicas.partition("t", 0).log.increment_log_start_offset(1)
    broker.log_manager.checkpoint()
    broker.delete("t")
    broker.create("t")
    broker.replicas.partition("t", 1).log.increment_log_start_offset(2)
    broker.log_manager.checkpoint()
    broker.undelete("t", "old")
    broker.restart()
    assert broker.values("old") == [[b"b", b"c"], *ABC[1:]]
    assert broker.values("t") == [ABC[0], [b"c"], ABC[2]]


def test_a_checkpoint_of_a_deleted_topic_does_not_apply_to_a_new_one_of_its_name(
    broker: Broker,
) -> None:
    broker.create("x")
    for index in range(PARTITIONS):
        broker.replicas.partition("x", index).log.increment_log_start_offset(3)
    broker.log_manager.checkpoint()
    broker.delete("x")
    broker.delete("t")
    before, decision = broker.image, decide_undelete(broker.image, TrashedTopicRequest("t"), "x")
    broker.image = replayed(before, decision)  # and killed before the broker replays it
    broker.restart()
    assert broker.values("x") == ABC


def test_trash_sizes_are_reported(broker: Broker) -> None:
    topic_id = broker.image.topics["t"].topic_id
    assert broker.replicas.trash.sizes_bytes() == {}
    broker.delete("t")
    assert broker.replicas.trash.sizes_bytes().keys() == {topic_id}
    assert broker.replicas.trash.sizes_bytes()[topic_id] > 3 * 3 * 60


@pytest.mark.parametrize("restarted", [False, True])
def test_purged_logs_are_removed(broker: Broker, restarted: bool) -> None:
    broker.replicas.on_deleted = lambda: None
    topic_id = broker.image.topics["t"].topic_id
    broker.delete("t")
    broker.purge("t")
    assert broker.replicas.deleted_topics() == [topic_id]
    if restarted:
        broker.restart()
    else:
        broker.log_manager.delete_due(broker.clock.monotonic_ms())
    assert broker.on_disk() == []


def test_a_log_that_is_missing_in_the_trash_is_created_only_after_it_is_reported(broker: Broker) -> None:
    reports: list[int] = []
    broker.replicas.on_missing_log = lambda: reports.append(1)
    broker.delete("t")
    for directory in broker.paths:
        for path in directory.glob("*-0.*-stray"):
            shutil.rmtree(path)
    broker.undelete("t")
    assert broker.replicas.find("t", 0) is None
    assert broker.replicas.find("t", 1) is not None
    lost = broker.replicas.lost_replicas()
    assert ([replica.partition for replica in lost], reports) == ([0], [1])
    asyncio.run(broker.replicas.open_empty(lost))
    assert broker.replicas.find("t", 0) is not None
    assert broker.replicas.lost_replicas() == frozenset()


# Kills: after the commit the broker dies at its n-th rename of a directory.


def dies_at(monkeypatch: pytest.MonkeyPatch, rename_number: int) -> Callable[[], None]:
    """Make the process die at its n-th rename of a log directory; return a function that ends this."""
    rename, count = disk.rename, 0

    def renamed(self: Path, target: Path) -> Path:
        nonlocal count
        if self.is_dir():
            if count >= rename_number:
                raise Killed
            count += 1
        return rename(self, target)

    monkeypatch.setattr(disk, "rename", renamed)
    return monkeypatch.undo


def killed_while(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, rename_number: int, act: Callable[[], None]
) -> None:
    alive = dies_at(monkeypatch, rename_number)
    try:
        act()
    except Killed:
        pass
    finally:
        alive()
    broker.restart()


@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_a_deletion_killed_at_any_point_can_be_undone(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, rename_number: int
) -> None:
    broker.replicas.partition("t", 2).log.increment_log_start_offset(1)
    broker.log_manager.checkpoint()
    killed_while(broker, monkeypatch, rename_number, lambda: broker.delete("t"))
    assert broker.on_disk() == TRASHED
    broker.undelete("t")
    assert broker.values("t") == [*ABC[:2], [b"b", b"c"]]


@pytest.mark.parametrize("name", [None, "other"])
@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_an_undeletion_killed_at_any_point_is_completed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, rename_number: int, name: str | None
) -> None:
    broker.replicas.partition("t", 2).log.increment_log_start_offset(1)
    broker.delete("t")
    killed_while(broker, monkeypatch, rename_number, lambda: broker.undelete("t", name))
    assert broker.on_disk() == [f"{name or 't'}-{index}" for index in range(PARTITIONS)]
    assert broker.values(name or "t") == [*ABC[:2], [b"b", b"c"]]
    broker.restart(kill=False)
    assert broker.values(name or "t") == [*ABC[:2], [b"b", b"c"]]


@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_a_purge_killed_at_any_point_is_completed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, rename_number: int
) -> None:
    broker.delete("t")
    killed_while(broker, monkeypatch, rename_number, lambda: broker.purge("t"))
    assert broker.on_disk() == []


def test_unknown_logs_are_kept(broker: Broker) -> None:
    broker.delete("t")
    broker.image = cluster(1)
    broker.restart()
    assert broker.on_disk() == TRASHED


# Disk failures


@pytest.fixture
def failing_disk(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make renames on the first disk fail until the broker restarts."""
    rename, first, log_manager = disk.rename, broker.paths[0], broker.log_manager

    def renamed(self: Path, target: Path) -> Path:
        if self.parent == first and self.is_dir() and broker.log_manager is log_manager:
            raise OSError("I/O error")
        return rename(self, target)

    monkeypatch.setattr(disk, "rename", renamed)
    return first


def offline(broker: Broker) -> list[Path]:
    return [each.path for each in broker.log_manager.directories if each.failure is not None]


def test_a_disk_that_fails_during_a_purge_is_offline_and_others_are_purged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.delete("t")
    rename = disk.rename

    def renamed(self: Path, target: Path) -> Path:
        if self.parent == broker.paths[0]:
            raise OSError("I/O error")
        return rename(self, target)

    monkeypatch.setattr(disk, "rename", renamed)
    broker.purge("t")
    assert offline(broker) == broker.paths[:1]
    assert not list(broker.paths[1].glob("*-stray"))
    assert list(broker.paths[1].glob("*-delete"))


def test_a_disk_that_fails_after_an_undeletion_is_offline(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_path: Path) -> None:
        raise OSError("read-only file system")

    broker.delete("t")
    monkeypatch.setattr(module, "remove_state", failing)
    broker.undelete("t")
    assert offline(broker) == broker.paths


def test_a_disk_that_fails_before_logs_are_loaded_is_offline(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(directory: LogDirectory) -> None:
        raise OSError("I/O error")

    monkeypatch.setattr(module, "trashed_logs", failing)
    reconcile_trash(broker.log_manager, broker.image.topic_names, ())
    assert offline(broker) == broker.paths


def test_logs_of_a_former_offline_disk_get_the_topics_present_name(
    broker: Broker, failing_disk: Path
) -> None:
    lost = next(index for index in range(PARTITIONS) if (failing_disk / f"t-{index}").exists())
    broker.replicas.partition("t", lost).log.increment_log_start_offset(1)
    broker.log_manager.checkpoint()
    broker.delete("t")
    broker.undelete("t", "other")
    assert offline(broker) == [failing_disk]
    broker.restart()
    assert broker.on_disk() == [f"other-{index}" for index in range(PARTITIONS)]
    assert [values[-1] for values in broker.values("other")] == [b"c"] * PARTITIONS
    assert broker.values("other")[lost] == [b"b", b"c"]


def test_a_topic_that_took_the_name_while_a_disk_was_offline_keeps_it(
    broker: Broker, failing_disk: Path
) -> None:
    broker.delete("t")
    broker.create("t")
    broker.append("t", 0, b"d")
    broker.restart()
    assert broker.values("t") == [[b"a", b"b", b"c", b"d"], *ABC[1:]]
    broker.undelete("t", "old")
    assert broker.values("old") == ABC


def left_after_a_while(broker: Broker) -> list[str]:
    broker.log_manager.delete_due(broker.clock.monotonic_ms() + LogConfig().file_delete_delay_ms)
    return broker.on_disk()


@pytest.mark.parametrize("is_deleted_before", [True, False])
def test_logs_purged_while_a_disk_was_offline_are_removed_later(
    broker: Broker, request: pytest.FixtureRequest, is_deleted_before: bool
) -> None:
    if is_deleted_before:
        broker.delete("t")
    failing_disk = request.getfixturevalue("failing_disk")
    if not is_deleted_before:
        broker.delete("t")
    broker.purge("t")
    assert offline(broker) == [failing_disk]
    assert broker.image.deleted_topics, "the cluster remembers what the disk may have"
    broker.restart()
    assert left_after_a_while(broker) == []
    assert not broker.image.deleted_topics


@pytest.mark.usefixtures("failing_disk")
def test_a_topic_deleted_without_trash_while_a_disk_was_offline_is_removed_later(broker: Broker) -> None:
    broker.commit(decide_delete(broker.image, [TopicToDelete("t")]))
    broker.create("t")
    broker.restart()
    assert left_after_a_while(broker) == NAMED
    assert not broker.image.deleted_topics


def test_a_disk_that_stays_offline_is_still_awaited(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, failing_disk: Path
) -> None:
    broker.delete("t")
    broker.purge("t")
    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "partitions_on_disk", _fails_on(failing_disk))
        broker.restart()
    assert offline(broker) == [failing_disk]
    assert broker.image.deleted_topics
    broker.restart()
    assert left_after_a_while(broker) == []


def _fails_on(disk: Path) -> Callable[[LogDirectory], list[tuple[TopicPartition, Path]]]:
    partitions_on_disk = LogDirectory.partitions_on_disk

    def listed(directory: LogDirectory) -> list[tuple[TopicPartition, Path]]:
        if directory.path == disk:
            raise OSError("I/O error")
        return partitions_on_disk(directory)

    return listed


def test_a_log_with_the_name_of_an_undeleted_one_is_renamed(broker: Broker) -> None:
    first = broker.image.topics["t"].topic_id
    broker.delete("t")
    broker.create("t")
    broker.append("t", 0, b"d")
    for decide in (
        lambda image: decide_delete(image, [TopicToDelete("t")], trash=ALICE),
        lambda image: decide_undelete(image, TrashedTopicRequest("t", first)),
    ):
        broker.image = replayed(broker.image, decide(broker.image))  # and killed before the broker replays it
    broker.restart()
    assert broker.values("t") == ABC
    broker.undelete("t", "second")
    assert broker.values("second") == [[b"a", b"b", b"c", b"d"], *ABC[1:]]


def test_logs_being_removed_have_no_size(broker: Broker) -> None:
    broker.delete("t")
    trash = broker.replicas.trash
    found = list(trash._trashed())
    for _, each in found:
        shutil.rmtree(each.path)
    trash._trashed = lambda: iter(found)  # type: ignore[method-assign]
    assert set(trash.sizes_bytes().values()) == {0}
