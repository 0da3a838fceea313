"""Reports of deleted topics, also while the store fails."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast

from barnabas.log.log_manager import LogManager
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.deletion_reporter import DeletionReporter
from barnabas.replication.replica_manager import ReplicaManager
from support.images import RULES, manually_assigned, register_brokers
from support.loop import on_loop, turns
from support.memory_store import MemoryStore, UnreliableStore


class Replicas:
    """Replicas of broker 1, of which the logs of some deleted topics are renamed."""

    def __init__(self) -> None:
        self.on_deleted = lambda: None
        self.deleted: list[bytes] = []

    def deleted_topics(self) -> list[bytes]:
        return self.deleted[:]

    def mark_reported(self, topic_ids: Iterable[bytes]) -> None:
        self.deleted = [topic_id for topic_id in self.deleted if topic_id not in topic_ids]


class Directories:
    """Log directories that count how often they are flushed."""

    def __init__(self) -> None:
        self.any_offline = False
        self.flushes_count = 0

    def flush_directories(self) -> None:
        self.flushes_count += 1


@asynccontextmanager
async def reporter(
    store: MemoryStore, directories: Directories
) -> AsyncIterator[tuple[DeletionReporter, Replicas, MetadataWriter]]:
    """Run the reporter of broker 1, after a topic on brokers 1 and 2 was deleted."""
    writer, replicas = MetadataWriter(store), Replicas()
    await writer.start()
    await register_brokers(writer, 1, 2)
    topic = manually_assigned("t", [1, 2])
    await writer.write(
        lambda image: decide_create(image, [topic], RULES, random.Random(1), validate_only=False)
    )
    await writer.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
    running = DeletionReporter(1, cast("ReplicaManager", replicas), cast("LogManager", directories), writer)
    running.start()
    try:
        yield running, replicas, writer
    finally:
        await running.stop()
        await writer.stop()


def left(writer: MetadataWriter) -> tuple[int, ...]:
    """Return the brokers that have not reported the deletion."""
    (topic,) = writer.image.deleted_topics.values()
    return topic.brokers


async def until_left(writer: MetadataWriter, *brokers: int) -> None:
    async with asyncio.timeout(30):
        while left(writer) != brokers:
            await asyncio.sleep(0.01)


async def until_flushed(directories: Directories) -> None:
    async with asyncio.timeout(30):
        while directories.flushes_count == 0:
            await asyncio.sleep(0.01)


@on_loop
async def test_a_deleted_topic_is_reported_once_after_its_directory_is_flushed() -> None:
    directories = Directories()
    async with reporter(MemoryStore(), directories) as (running, replicas, writer):
        (topic,) = writer.image.deleted_topics.values()
        replicas.deleted = [topic.topic_id]
        replicas.on_deleted()
        await until_left(writer, 2)
        assert replicas.deleted == []
        replicas.on_deleted()
        await turns()
        assert directories.flushes_count == 1
        assert running.statistics() == {"reported_count": 1}


@on_loop
async def test_topics_that_were_deleted_before_the_start_are_reported() -> None:
    async with reporter(MemoryStore(), Directories()) as (_, replicas, writer):
        (topic,) = writer.image.deleted_topics.values()
        replicas.deleted = [topic.topic_id]  # before the reporter's task has run
        await until_left(writer, 2)


@on_loop
async def test_a_report_is_repeated_until_the_store_takes_it() -> None:
    store = UnreliableStore()
    async with reporter(store, Directories()) as (_, replicas, writer):
        (topic,) = writer.image.deleted_topics.values()
        store.is_available = False
        replicas.deleted = [topic.topic_id]
        replicas.on_deleted()
        await store.refused.wait()
        assert left(writer) == (1, 2)
        store.is_available = True
        await until_left(writer, 2)


@on_loop
async def test_nothing_is_reported_while_a_directory_is_offline() -> None:
    directories = Directories()
    directories.any_offline = True
    async with reporter(MemoryStore(), directories) as (_, replicas, writer):
        (topic,) = writer.image.deleted_topics.values()
        replicas.deleted = [topic.topic_id]
        replicas.on_deleted()
        await until_flushed(directories)
        await turns()
        assert left(writer) == (1, 2)
