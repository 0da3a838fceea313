"""Logs of deleted topics: kept, undeleted, purged, and restored after the broker was killed in between."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import PARTITION_METADATA_FILE
from barnabas.log.trash.state import STATE_FILE
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_undelete
from support.images import cluster, replayed
from support.trash import ABC, ALICE, NAMED, PARTITIONS, TRASHED, TrashBroker


class Killed(BaseException):
    """The process was killed: nothing after this happens."""


def test_logs_of_a_deleted_topic_are_renamed_and_others_are_not(trash_broker: TrashBroker) -> None:
    trash_broker.delete("t")
    assert trash_broker.on_disk() == TRASHED
    assert not trash_broker.log_manager.logs
    assert trash_broker.log_manager.deletions.remove_due(trash_broker.clock.monotonic_ms() + 10**9) == 0


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("restarts", [(), ("deleted",), ("deleted", "undeleted"), ("undeleted",)])
def test_records_can_be_undeleted_after_restarts(
    trash_broker: TrashBroker, kill: bool, restarts: tuple[str, ...]
) -> None:
    trash_broker.delete("t")
    if "deleted" in restarts:
        trash_broker.restart(kill=kill)
    trash_broker.undelete("t")
    if "undeleted" in restarts:
        trash_broker.restart(kill=kill)
    assert trash_broker.values("t") == ABC
    assert trash_broker.on_disk() == NAMED
    trash_broker.append("t", 0, b"d")
    assert trash_broker.values("t")[0] == [b"a", b"b", b"c", b"d"]


def test_the_log_start_offset_is_kept(trash_broker: TrashBroker) -> None:
    trash_broker.replicas.partition("t", 1).log.increment_log_start_offset(2)
    trash_broker.delete("t")
    trash_broker.restart()
    trash_broker.undelete("t")
    assert trash_broker.values("t") == [ABC[0], [b"c"], ABC[2]]
    trash_broker.restart()
    assert trash_broker.values("t") == [ABC[0], [b"c"], ABC[2]]
    assert not [path for disk in trash_broker.paths for path in disk.glob(f"*/{STATE_FILE}")]


def test_flushed_segments_are_not_recovered_again(trash_broker: TrashBroker) -> None:
    log = trash_broker.replicas.partition("t", 0).log
    log._roll(log.log_end_offset)
    log.flush()
    trash_broker.delete("t")
    trash_broker.undelete("t")
    logs = trash_broker.log_manager.logs
    assert [logs[TopicPartition("t", index)].recovery_point for index in (0, 1)] == [3, 0]


def test_a_state_file_damaged_by_a_power_failure_loses_no_records(trash_broker: TrashBroker) -> None:
    trash_broker.replicas.partition("t", 0).log.flush()
    trash_broker.delete("t")
    [state] = [path for disk in trash_broker.paths for path in disk.glob(f"*/{STATE_FILE}")]
    state.write_bytes(b"\0\0")
    trash_broker.undelete("t")
    assert trash_broker.values("t") == ABC


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_log_whose_topic_id_a_power_failure_has_taken_goes_to_the_trash_again(
    trash_broker: TrashBroker, is_restarted: bool
) -> None:
    trash_broker.delete("t")
    for directory in trash_broker.paths:
        for path in directory.glob(f"*-stray/{PARTITION_METADATA_FILE}"):
            path.write_bytes(b"")
    if is_restarted:
        decision = decide_undelete(trash_broker.image, TrashedTopicRequest("t"))
        trash_broker.image = replayed(trash_broker.image, decision)  # and killed before the broker replays it
        trash_broker.restart()
    else:
        trash_broker.undelete("t")
    assert trash_broker.values("t") == ABC
    trash_broker.delete("t")
    assert trash_broker.on_disk() == TRASHED
    trash_broker.undelete("t")
    assert trash_broker.values("t") == ABC


@pytest.mark.parametrize("new_name", ["a", "zz"])
def test_a_topic_that_was_renamed_through_the_trash_in_one_change_keeps_its_records(
    trash_broker: TrashBroker, new_name: str
) -> None:
    """The metadata is loaded again after its history was lost: deletion and undeletion arrive together."""
    before = trash_broker.image
    deletion = decide_delete(before, [TopicToDelete("t")], trash=ALICE)
    deleted = replayed(before, deletion)
    undeletion = decide_undelete(deleted, TrashedTopicRequest("t"), new_name)
    trash_broker.image = replayed(deleted, undeletion)
    changed = ChangedKeys((*deletion.changes, *undeletion.changes))
    asyncio.run(trash_broker.replicas.apply(before, trash_broker.image, changed))
    assert trash_broker.values(new_name) == ABC
    topic_id = trash_broker.image.topics[new_name].topic_id
    assert trash_broker.replicas.find_by_id(topic_id, 0) is trash_broker.replicas.partition(new_name, 0)
    trash_broker.restart()
    assert trash_broker.values(new_name) == ABC


def test_another_topic_of_the_name_is_independent(trash_broker: TrashBroker) -> None:
    trash_broker.replicas.partition("t", 0).log.increment_log_start_offset(1)
    trash_broker.log_manager.checkpoint()
    trash_broker.delete("t")
    trash_broker.create("t")
    trash_broker.replicas.partition("t", 1).log.increment_log_start_offset(2)
    trash_broker.log_manager.checkpoint()
    trash_broker.undelete("t", "old")
    trash_broker.restart()
    assert trash_broker.values("old") == [[b"b", b"c"], *ABC[1:]]
    assert trash_broker.values("t") == [ABC[0], [b"c"], ABC[2]]


def test_a_checkpoint_of_a_deleted_topic_does_not_apply_to_a_new_one_of_its_name(
    trash_broker: TrashBroker,
) -> None:
    trash_broker.create("x")
    for index in range(PARTITIONS):
        trash_broker.replicas.partition("x", index).log.increment_log_start_offset(3)
    trash_broker.log_manager.checkpoint()
    trash_broker.delete("x")
    trash_broker.delete("t")
    before, decision = trash_broker.image, decide_undelete(trash_broker.image, TrashedTopicRequest("t"), "x")
    trash_broker.image = replayed(before, decision)  # and killed before the broker replays it
    trash_broker.restart()
    assert trash_broker.values("x") == ABC


def test_trash_sizes_are_reported(trash_broker: TrashBroker) -> None:
    topic_id = trash_broker.image.topics["t"].topic_id
    assert trash_broker.replicas.trash.sizes_bytes() == {}
    trash_broker.delete("t")
    assert trash_broker.replicas.trash.sizes_bytes().keys() == {topic_id}
    assert trash_broker.replicas.trash.sizes_bytes()[topic_id] > 3 * 3 * 60


@pytest.mark.parametrize("restarted", [False, True])
def test_purged_logs_are_removed(trash_broker: TrashBroker, restarted: bool) -> None:
    trash_broker.replicas.on_deleted = lambda: None
    topic_id = trash_broker.image.topics["t"].topic_id
    trash_broker.delete("t")
    trash_broker.purge("t")
    assert trash_broker.replicas.deleted_topics() == [topic_id]
    if restarted:
        trash_broker.restart()
    else:
        trash_broker.log_manager.deletions.remove_due(trash_broker.clock.monotonic_ms())
    assert trash_broker.on_disk() == []


def test_a_log_that_is_missing_in_the_trash_is_created_only_after_it_is_reported(
    trash_broker: TrashBroker,
) -> None:
    reports: list[int] = []
    trash_broker.replicas.on_missing_log = lambda: reports.append(1)
    trash_broker.delete("t")
    for directory in trash_broker.paths:
        for path in directory.glob("*-0.*-stray"):
            shutil.rmtree(path)
    trash_broker.undelete("t")
    assert trash_broker.replicas.find("t", 0) is None
    assert trash_broker.replicas.find("t", 1) is not None
    lost = trash_broker.replicas.lost_replicas()
    assert ([replica.partition for replica in lost], reports) == ([0], [1])
    asyncio.run(trash_broker.replicas.open_empty(lost))
    assert trash_broker.replicas.find("t", 0) is not None
    assert trash_broker.replicas.lost_replicas() == frozenset()


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
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, rename_number: int, act: Callable[[], None]
) -> None:
    alive = dies_at(monkeypatch, rename_number)
    try:
        act()
    except Killed:
        pass
    finally:
        alive()
    trash_broker.restart()


@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_a_deletion_killed_at_any_point_can_be_undone(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, rename_number: int
) -> None:
    trash_broker.replicas.partition("t", 2).log.increment_log_start_offset(1)
    trash_broker.log_manager.checkpoint()
    killed_while(trash_broker, monkeypatch, rename_number, lambda: trash_broker.delete("t"))
    assert trash_broker.on_disk() == TRASHED
    trash_broker.undelete("t")
    assert trash_broker.values("t") == [*ABC[:2], [b"b", b"c"]]


@pytest.mark.parametrize("name", [None, "other"])
@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_an_undeletion_killed_at_any_point_is_completed(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, rename_number: int, name: str | None
) -> None:
    trash_broker.replicas.partition("t", 2).log.increment_log_start_offset(1)
    trash_broker.delete("t")
    killed_while(trash_broker, monkeypatch, rename_number, lambda: trash_broker.undelete("t", name))
    assert trash_broker.on_disk() == [f"{name or 't'}-{index}" for index in range(PARTITIONS)]
    assert trash_broker.values(name or "t") == [*ABC[:2], [b"b", b"c"]]
    trash_broker.restart(kill=False)
    assert trash_broker.values(name or "t") == [*ABC[:2], [b"b", b"c"]]


@pytest.mark.parametrize("rename_number", range(PARTITIONS + 1))
def test_a_purge_killed_at_any_point_is_completed(
    trash_broker: TrashBroker, monkeypatch: pytest.MonkeyPatch, rename_number: int
) -> None:
    trash_broker.delete("t")
    killed_while(trash_broker, monkeypatch, rename_number, lambda: trash_broker.purge("t"))
    assert trash_broker.on_disk() == []


def test_unknown_logs_are_kept(trash_broker: TrashBroker) -> None:
    trash_broker.delete("t")
    trash_broker.image = cluster(1)
    trash_broker.restart()
    assert trash_broker.on_disk() == TRASHED


def test_a_log_with_the_name_of_an_undeleted_one_is_renamed(trash_broker: TrashBroker) -> None:
    first = trash_broker.image.topics["t"].topic_id
    trash_broker.delete("t")
    trash_broker.create("t")
    trash_broker.append("t", 0, b"d")
    for decide in (
        lambda image: decide_delete(image, [TopicToDelete("t")], trash=ALICE),
        lambda image: decide_undelete(image, TrashedTopicRequest("t", first)),
    ):
        # killed before the broker replays it
        trash_broker.image = replayed(trash_broker.image, decide(trash_broker.image))
    trash_broker.restart()
    assert trash_broker.values("t") == ABC
    trash_broker.undelete("t", "second")
    assert trash_broker.values("second") == [[b"a", b"b", b"c", b"d"], *ABC[1:]]


def test_logs_being_removed_have_no_size(trash_broker: TrashBroker) -> None:
    trash_broker.delete("t")
    trash = trash_broker.replicas.trash
    found = list(trash._trashed())
    for _, each in found:
        shutil.rmtree(each.path)
    trash._trashed = lambda: iter(found)  # type: ignore[method-assign]
    assert set(trash.sizes_bytes().values()) == {0}
