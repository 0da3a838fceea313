"""Reports of replicas without a usable log, also while the store fails."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.election_rules import DEFAULT_RULES
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.replica_fetchers import ReplicaFetchers
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.replica_reporter import RETRY_S, ReplicaReporter
from support.images import RULES, manually_assigned, register_brokers
from support.loop import in_virtual_time, turns
from support.memory_store import MemoryStore, UnreliableStore


class Replicas:
    """Replicas of broker 1, some of which have no usable log, and their fetchers."""

    def __init__(self) -> None:
        self.on_missing_log = lambda: None
        self.offline: set[TopicIdPartition] = set()
        self.lost: set[TopicIdPartition] = set()
        self.opened: list[TopicIdPartition] = []
        self.followed: list[TopicIdPartition] = []

    def offline_replicas(self) -> frozenset[TopicIdPartition]:
        return frozenset(self.offline)

    def lost_replicas(self) -> frozenset[TopicIdPartition]:
        return frozenset(self.lost)

    async def open_empty(self, lost: Iterable[TopicIdPartition]) -> None:
        self.lost.difference_update(lost)
        self.opened += lost

    def follow_opened(self, replicas: Iterable[TopicIdPartition]) -> None:
        self.followed += (replica for replica in replicas if replica in self.opened)


@asynccontextmanager
async def reporter(store: MemoryStore) -> AsyncIterator[tuple[ReplicaReporter, Replicas, MetadataWriter]]:
    """Run the reporter of broker 1, with a topic of two partitions on brokers 1 and 2."""
    writer, replicas = MetadataWriter(store), Replicas()
    await writer.start()
    await register_brokers(writer, 1, 2)
    topic = manually_assigned("t", [1, 2], [2, 1])
    await writer.write(
        lambda image: decide_create(image, [topic], RULES, random.Random(1), validate_only=False)
    )
    running = ReplicaReporter(
        1, cast("ReplicaManager", replicas), cast("ReplicaFetchers", replicas), writer, DEFAULT_RULES
    )
    running.start()
    try:
        yield running, replicas, writer
    finally:
        await running.stop()
        await writer.stop()


def partition(writer: MetadataWriter, index: int) -> TopicIdPartition:
    return TopicIdPartition(writer.image.topics["t"].topic_id, index)


def isr(writer: MetadataWriter, index: int) -> tuple[int, ...]:
    return writer.image.partition(writer.image.topics["t"], index).isr


@in_virtual_time
async def test_a_replica_in_a_failed_directory_is_reported_once() -> None:
    async with reporter(MemoryStore()) as (running, replicas, writer):
        replicas.offline = {partition(writer, 0)}
        for _ in range(2):
            replicas.on_missing_log()
            await turns()
            assert running.statistics() == {"reported_count": 1}
        assert (isr(writer, 0), isr(writer, 1)) == ((2,), (2, 1))


@in_virtual_time
async def test_a_report_is_repeated_until_the_store_takes_it() -> None:
    store = UnreliableStore()
    async with reporter(store) as (_, replicas, writer):
        store.is_available = False
        replicas.offline = {partition(writer, 0)}
        replicas.on_missing_log()
        await asyncio.sleep(3 * RETRY_S)
        assert isr(writer, 0) == (1, 2)
        store.is_available = True
        await asyncio.sleep(2 * RETRY_S)
        assert isr(writer, 0) == (2,)


@in_virtual_time
async def test_a_log_that_was_not_found_is_created_and_copied_after_the_replica_has_left_the_isr() -> None:
    async with reporter(MemoryStore()) as (_, replicas, writer):
        replicas.lost = {partition(writer, 1)}
        replicas.on_missing_log()
        await turns()
        assert isr(writer, 1) == (2,)
        assert not replicas.lost
        assert replicas.followed == [partition(writer, 1)]
