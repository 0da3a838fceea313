"""Starts with metadata that are older than the logs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.base.topic_names import TRANSACTION_TOPIC
from barnabas.log.log_directory import LogDirectory
from barnabas.metadata.producer_ids import SKIPPED_COUNT, decide_allocate_block
from barnabas.metadata.restored_backup import EPOCHS_SKIPPED
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.trash import TrashEntry
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.memory_store import MemoryStore
from support.nodes import RunningNode, running_node


def epochs(node: RunningNode, topic: str = "t") -> list[int]:
    image = node.broker.image
    described = image.topics[topic]
    return [image.partition(described, index).leader_epoch for index in range(described.partition_count)]


def backup_of(store: MemoryStore) -> MemoryStore:
    copied = MemoryStore()
    copied.revision, copied.items, copied.commits = store.revision, dict(store.items), list(store.commits)
    return copied


async def backup_before_a_producer(tmp_path: Path, producer_id: int) -> MemoryStore:
    """Return a backup that lacks a commit and the producer id in the log of `t-0`."""
    async with running_node(tmp_path, store := MemoryStore()) as node:
        await node.create(new_topic("t", 2))
        backup = backup_of(store)
        await node.create(new_topic("later"))
        records = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        node.partition("t").append_as_leader(records, 1)
    return backup


@on_loop
async def test_a_store_that_is_behind_the_revision_in_the_log_directory_is_continued(tmp_path: Path) -> None:
    backup = await backup_before_a_producer(tmp_path, 1_500)
    async with running_node(tmp_path, backup) as node:
        assert epochs(node) == [EPOCHS_SKIPPED] * 2
        assert decide_allocate_block(node.broker.image.producer_ids).response.start > 1_500 + SKIPPED_COUNT
        assert node.partition("t").log.latest_epoch == EPOCHS_SKIPPED
    async with running_node(tmp_path, backup) as node:
        assert epochs(node) == [EPOCHS_SKIPPED] * 2, "only once"


@on_loop
async def test_producer_ids_continue_if_the_backup_has_only_topics_in_the_trash(tmp_path: Path) -> None:
    async with running_node(tmp_path, store := MemoryStore()) as node:
        await node.create(new_topic("t"))
        trash = TrashEntry(1_700_000_000_000, "User:alice")
        await node.broker.metadata.write(
            lambda image: decide_delete(image, [TopicToDelete("t")], trash=trash)
        )
        backup = backup_of(store)
        await node.create(new_topic("later"))
        records = batch(b"x", producer_id=1_500, producer_epoch=0, base_sequence=0)
        node.partition("later").append_as_leader(records, 1)
    async with running_node(tmp_path, backup) as node:
        assert decide_allocate_block(node.broker.image.producer_ids).response.start > 1_500 + SKIPPED_COUNT


@on_loop
async def test_the_replicas_of_a_topic_that_was_purged_after_the_backup_are_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_node(tmp_path, store := MemoryStore()) as node:
        await node.create(new_topic("t"), new_topic("purged"))
        backup = backup_of(store)
        await node.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete("purged")]))
        await node.create(new_topic("later"))
    async with running_node(tmp_path, backup):
        pass
    [error] = [line for line in capsys.readouterr().err.splitlines() if "[error]" in line]
    assert "replicas have no logs" in error
    assert "replicas_count=1" in error


@on_loop
async def test_a_continuation_that_is_interrupted_is_made_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = await backup_before_a_producer(tmp_path, 7)
    commit = MemoryStore.commit

    async def fail_later(
        store: MemoryStore, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        if store.revision > backup_revision:
            raise asyncio.CancelledError
        return await commit(store, reads, changes, commit_id)

    backup_revision = backup.revision
    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "commit", fail_later)
        with pytest.raises(asyncio.CancelledError):
            async with running_node(tmp_path, backup):
                pass
    assert backup.revision > backup_revision
    async with running_node(tmp_path, backup) as node:
        assert epochs(node) == [EPOCHS_SKIPPED] * 2


@on_loop
async def test_a_log_directory_that_cannot_be_read_goes_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = LogDirectory.read_metadata_revision

    def fail(directory: LogDirectory) -> int:
        if directory.path.name == "bad":
            raise OSError("I/O error")
        return read(directory)

    monkeypatch.setattr(LogDirectory, "read_metadata_revision", fail)
    both = f"{tmp_path / 'good'},{tmp_path / 'bad'}"
    store = MemoryStore()
    async with running_node(tmp_path, store, log_dirs=both) as node:
        await node.create(new_topic("t"))
    async with running_node(tmp_path, store, log_dirs=both) as node:
        failures = {each.path.name: each.failure for each in node.log_manager.directories}
        assert failures == {"good": None, "bad": "I/O error"}


@on_loop
async def test_a_damaged_log_of_a_transaction_coordinator_does_not_prevent_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_node(tmp_path, store := MemoryStore()) as node:
        await node.create(new_topic(TRANSACTION_TOPIC))
        backup = backup_of(store)
        await node.create(new_topic("later"))
        node.partition(TRANSACTION_TOPIC).append_as_leader(batch(b"no transaction", key=b"\x00\x00"), 1)
    async with running_node(tmp_path, backup) as node:
        assert epochs(node, TRANSACTION_TOPIC) == [EPOCHS_SKIPPED]
    assert "cannot read the producer ids in a log" in capsys.readouterr().err
