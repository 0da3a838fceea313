"""Disks that fail while topics are deleted, undeleted and purged."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.log.trash import trash as module
from barnabas.log.trash.state import trash_directory
from barnabas.log.trash.trash import reconcile_trash
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.wire.errors import ErrorCode, KafkaError
from support.trash import ABC, NAMED, PARTITIONS, TRASHED, TrashBroker


@pytest.fixture
def failing_disk(trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make renames on the first disk fail until the broker restarts."""
    rename, first, log_manager = disk.rename, trash_broker.paths[0], trash_broker.log_manager

    def renamed(self: Path, target: Path) -> Path:
        if self.parent == first and self.is_dir() and trash_broker.log_manager is log_manager:
            raise OSError("I/O error")
        return rename(self, target)

    monkeypatch.setattr(disk, "rename", renamed)
    return first


def offline(trash_broker: TrashBroker) -> list[Path]:
    return [each.path for each in trash_broker.log_manager.directories if each.failure is not None]


def test_a_disk_that_fails_during_a_purge_is_offline_and_others_are_purged(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash_broker.delete("t")
    rename = disk.rename

    def renamed(self: Path, target: Path) -> Path:
        if self.parent == trash_broker.paths[0]:
            raise OSError("I/O error")
        return rename(self, target)

    monkeypatch.setattr(disk, "rename", renamed)
    trash_broker.purge("t")
    assert offline(trash_broker) == trash_broker.paths[:1]
    assert not list(trash_broker.paths[1].glob("*-stray"))
    assert list(trash_broker.paths[1].glob("*-delete"))


def test_a_disk_that_fails_after_an_undeletion_is_offline(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_path: Path) -> None:
        raise OSError("read-only file system")

    trash_broker.delete("t")
    monkeypatch.setattr(module, "remove_state", failing)
    trash_broker.undelete("t")
    assert offline(trash_broker) == trash_broker.paths


@pytest.mark.parametrize("function", ["write_state", "open_log"])
def test_a_disk_that_fails_during_an_undeletion_is_offline_and_the_next_start_completes_it(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def failing(*_arguments: object, **_keywords: object) -> None:
        raise OSError("I/O error")

    trash_broker.delete("t")
    with monkeypatch.context() as patch:
        patch.setattr(module, function, failing)
        trash_broker.undelete("t")
    assert offline(trash_broker) == trash_broker.paths
    assert not trash_broker.replicas.lost_replicas(), "an empty log would take the name"
    trash_broker.restart()
    assert trash_broker.values("t") == ABC


def test_a_log_in_the_trash_that_cannot_be_read_is_set_aside(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path, *_arguments: object, **_keywords: object) -> PartitionLog:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path} is damaged")

    trash_broker.delete("t")
    with monkeypatch.context() as patch:
        patch.setattr(module, "open_log", failing)
        trash_broker.undelete("t")
    assert not offline(trash_broker)
    lost = trash_broker.replicas.lost_replicas()
    assert len(lost) == PARTITIONS
    asyncio.run(trash_broker.replicas.open_empty(lost))
    assert trash_broker.on_disk() == sorted([*NAMED, *TRASHED])


def test_a_log_whose_name_in_the_trash_is_taken_goes_there_too(trash_broker: TrashBroker) -> None:
    log = trash_broker.replicas.partition("t", 0).log
    earlier = log.directory.with_name(trash_directory(log.topic_partition, log.topic_id or b""))
    shutil.copytree(log.directory, earlier)
    trash_broker.append("t", 0, b"d")
    trash_broker.delete("t")
    assert not offline(trash_broker)
    trash_broker.undelete("t")
    assert trash_broker.values("t") == [[b"a", b"b", b"c", b"d"], *ABC[1:]]
    assert trash_broker.on_disk() == sorted([*NAMED, "stray"])


def test_a_disk_that_fails_before_logs_are_loaded_is_offline(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(directory: LogDirectory) -> None:
        raise OSError("I/O error")

    monkeypatch.setattr(module, "trashed_logs", failing)
    reconcile_trash(trash_broker.log_manager, trash_broker.image.topic_names, ())
    assert offline(trash_broker) == trash_broker.paths


def test_logs_of_a_former_offline_disk_get_the_topics_present_name(
    trash_broker: TrashBroker, failing_disk: Path
) -> None:
    lost = next(index for index in range(PARTITIONS) if (failing_disk / f"t-{index}").exists())
    trash_broker.replicas.partition("t", lost).log.increment_log_start_offset(1)
    trash_broker.log_manager.checkpoint()
    trash_broker.delete("t")
    trash_broker.undelete("t", "other")
    assert offline(trash_broker) == [failing_disk]
    trash_broker.restart()
    assert trash_broker.on_disk() == [f"other-{index}" for index in range(PARTITIONS)]
    assert [values[-1] for values in trash_broker.values("other")] == [b"c"] * PARTITIONS
    assert trash_broker.values("other")[lost] == [b"b", b"c"]


def test_a_topic_that_took_the_name_while_a_disk_was_offline_keeps_it(
    trash_broker: TrashBroker, failing_disk: Path
) -> None:
    trash_broker.delete("t")
    trash_broker.create("t")
    trash_broker.append("t", 0, b"d")
    trash_broker.restart()
    assert trash_broker.values("t") == [[b"a", b"b", b"c", b"d"], *ABC[1:]]
    trash_broker.undelete("t", "old")
    assert trash_broker.values("old") == ABC


def left_after_a_while(trash_broker: TrashBroker) -> list[str]:
    trash_broker.log_manager.deletions.remove_due(
        trash_broker.clock.monotonic_ms() + LogConfig().file_delete_delay_ms
    )
    return trash_broker.on_disk()


@pytest.mark.parametrize("is_deleted_before", [True, False])
def test_logs_purged_while_a_disk_was_offline_are_removed_later(
    trash_broker: TrashBroker, request: pytest.FixtureRequest, is_deleted_before: bool
) -> None:
    if is_deleted_before:
        trash_broker.delete("t")
    failing_disk = request.getfixturevalue("failing_disk")
    if not is_deleted_before:
        trash_broker.delete("t")
    trash_broker.purge("t")
    assert offline(trash_broker) == [failing_disk]
    assert trash_broker.image.deleted_topics, "the cluster remembers what the disk may have"
    trash_broker.restart()
    assert left_after_a_while(trash_broker) == []
    assert not trash_broker.image.deleted_topics


@pytest.mark.usefixtures("failing_disk")
def test_a_topic_deleted_without_trash_while_a_disk_was_offline_is_removed_later(
    trash_broker: TrashBroker,
) -> None:
    trash_broker.commit(decide_delete(trash_broker.image, [TopicToDelete("t")]))
    trash_broker.create("t")
    trash_broker.restart()
    assert left_after_a_while(trash_broker) == NAMED
    assert not trash_broker.image.deleted_topics


def test_a_disk_that_stays_offline_is_still_awaited(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, failing_disk: Path
) -> None:
    trash_broker.delete("t")
    trash_broker.purge("t")
    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "partitions_on_disk", _fails_on(failing_disk))
        trash_broker.restart()
    assert offline(trash_broker) == [failing_disk]
    assert trash_broker.image.deleted_topics
    trash_broker.restart()
    assert left_after_a_while(trash_broker) == []


def _fails_on(disk: Path) -> Callable[[LogDirectory], list[tuple[TopicPartition, Path]]]:
    partitions_on_disk = LogDirectory.partitions_on_disk

    def listed(directory: LogDirectory) -> list[tuple[TopicPartition, Path]]:
        if directory.path == disk:
            raise OSError("I/O error")
        return partitions_on_disk(directory)

    return listed
