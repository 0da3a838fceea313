"""What the first steps of a start do when the metadata change meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.log_manager import LogManager
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.trash import TrashEntry
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_purge, decide_undelete
from barnabas.metadata.writer import MetadataWriter
from support.batches import batch, values_of
from support.images import new_topic
from support.loop import on_loop, turns
from support.memory_store import MemoryStore
from support.nodes import running_node
from support.waiting import reached

TRASHED = [TrashedTopicRequest("t")]


def undelete(image: MetadataImage) -> Decision[Any]:
    return decide_undelete(image, TRASHED[0], "again")


def purge(image: MetadataImage) -> Decision[Any]:
    return decide_purge(image, TRASHED)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def put_into_trash(tmp_path: Path, store: MemoryStore) -> None:
    async with running_node(tmp_path, store) as node:
        await node.create(new_topic("t", 2))
        for index in range(2):
            node.partition("t", index).append_as_leader(batch(b"kept"), 1)
        trash = TrashEntry(1_700_000_000_000, "User:alice")
        await node.broker.metadata.write(
            lambda image: decide_delete(image, [TopicToDelete("t")], trash=trash)
        )


def change_while_logs_are_loaded(monkeypatch: pytest.MonkeyPatch, store: MemoryStore, decide: Any) -> None:
    loop, load = asyncio.get_running_loop(), LogManager.load

    async def change() -> None:
        other = MetadataWriter(store)
        await other.start()
        await other.write(decide)
        await turns(50)  # until the broker that starts has the commit, too
        await other.stop()

    def load_and_change(log_manager: LogManager, *arguments: Any) -> None:
        load(log_manager, *arguments)
        asyncio.run_coroutine_threadsafe(change(), loop).result()

    monkeypatch.setattr(LogManager, "load", load_and_change)


@on_loop
async def test_a_topic_that_is_undeleted_while_logs_are_loaded_has_its_records(
    tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_into_trash(tmp_path, store)
    change_while_logs_are_loaded(monkeypatch, store, undelete)
    async with running_node(tmp_path, store) as node:
        for index in range(2):
            log = node.partition("again", index).log
            assert log.log_end_offset == 1
            assert values_of(log.read(0, 1_000, 1).data) == [b"kept"]


@on_loop
async def test_a_topic_that_is_purged_while_logs_are_loaded_leaves_no_logs(
    tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_into_trash(tmp_path, store)
    change_while_logs_are_loaded(monkeypatch, store, purge)
    async with running_node(tmp_path, store) as node:
        assert not list(tmp_path.glob("*-stray"))
        await reached(lambda: bool(node.log_manager.deletions.remove_due(node.clock.monotonic_ms())))
