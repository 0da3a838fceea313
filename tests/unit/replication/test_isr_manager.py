"""Changes of in-sync replicas that the store does not commit at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from barnabas.base.clock import ManualClock
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.election_rules import DEFAULT_RULES
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr import IsrChange
from barnabas.metadata.store import Commit, OutcomeUnknown, StoreChange, StoreError
from barnabas.metadata.topics import (
    PARTITION_STATES,
    TOPICS,
    PartitionRegistration,
    TopicImage,
    partition_key,
)
from barnabas.metadata.writer import UNKNOWN_OUTCOME_WAIT_S, MetadataWriter
from barnabas.replication import isr_manager
from barnabas.replication.isr_manager import IsrManager
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import batch
from support.images import broker
from support.loop import in_virtual_time, turns
from support.memory_store import MemoryStore

Make = Callable[..., Partition]


class UnavailableWriter:
    """Fails a number of writes, then leaves everything as it is; remembers what was requested."""

    image = MetadataImage()

    def __init__(self, failures_count: int) -> None:
        self.failures_left = failures_count
        self.requested: list[list[IsrChange]] = []
        self.large_counts: list[int] = []  #: of the changes that another thread is to decide
        self.partitions_max = 1000

    async def write(self, decide: Any, *, is_large: bool) -> int:
        self.requested.append(decide.keywords["requested"])
        if is_large:
            self.large_counts.append(len(self.requested[-1]))
        if self.failures_left:
            self.failures_left -= 1
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Cannot write to the metadata store.")
        return 0

    async def wait_for_revision(self, revision: int) -> None:
        assert revision == self.image.revision


class LosingStore(MemoryStore):
    """Once it fails, it makes the next commit without an answer, refuses the others, and shows nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._shows = asyncio.Event()
        self._shows.set()
        self._is_failing = self._has_lost_answer = False

    def fail(self) -> None:
        self._is_failing = True
        self._shows.clear()

    def show(self) -> None:
        """Show what was committed."""
        self._shows.set()

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        if self._has_lost_answer:
            raise StoreError("not reached")
        revision = await super().commit(reads, changes, commit_id)
        if self._is_failing:
            self._has_lost_answer = True
            raise OutcomeUnknown("no answer")
        return revision

    async def watch(self, revision: int) -> AsyncIterator[Commit]:
        async for commit in super().watch(revision):
            await self._shows.wait()
            yield commit


class SomePartitions:
    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.on_caught_up: Callable[[Partition], None] = lambda partition: None
        self._partitions = partitions

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)


def led(make_partition: Make, index: int = 0) -> Partition:
    state = PartitionRegistration(1, 0, (1, 2), replicas=(1, 2, 3))
    partition = make_partition((1, 2, 3), state, index=index)
    for _ in range(2):
        partition.append_as_leader(batch(b"x"), 1)
    partition.update_follower(2, 0, 0, 2)
    return partition


def manager_of(writer: UnavailableWriter | MetadataWriter, *partitions: Partition) -> IsrManager:
    made = IsrManager(
        1,
        cast("ReplicaManager", replicas := SomePartitions(partitions)),
        cast("MetadataWriter", writer),
        ManualClock(),
        lag_ms_max=lambda: 30_000,
        rules=DEFAULT_RULES,
    )
    for partition in partitions:
        partition.on_caught_up = replicas.on_caught_up
    return made


@in_virtual_time
async def test_while_the_outcome_of_a_request_is_unknown_the_high_watermark_respects_it(
    make_partition: Make,
) -> None:
    partition, writer = led(make_partition), UnavailableWriter(failures_count=1)
    manager = manager_of(writer, partition)
    manager.start()
    partition.update_follower(3, 7, 0, 2)
    await turns()
    assert len(writer.requested) == 1
    partition.append_as_leader(batch(b"y"), 1)
    partition.update_follower(2, 0, 0, 3)
    assert partition.log.high_watermark == 2  # broker 3 may be in sync already
    assert manager.statistics()["waiting_count"] == 1
    await manager.stop()


@in_virtual_time
async def test_a_request_that_failed_is_repeated_as_it_was(make_partition: Make) -> None:
    partition, writer = led(make_partition), UnavailableWriter(failures_count=2)
    manager = manager_of(writer, partition)
    manager.start()
    partition.update_follower(3, 7, 0, 2)
    await asyncio.sleep(3 * isr_manager.RETRY_S)
    first, second, third, *_ = writer.requested
    assert first == second == third
    assert [change.isr for change in first] == [(1, 2, 3)]
    await manager.stop()


@in_virtual_time
async def test_a_commit_that_is_being_replayed_when_the_request_is_repeated_keeps_the_high_watermark(
    make_partition: Make,
) -> None:
    partition, store = led(make_partition), LosingStore()
    topic = TopicImage("t", partition.topic_id, ((1, 2, 3),))
    state = PARTITION_STATES.put(partition_key(topic.topic_id, 0), PartitionRegistration(1, 0, (1, 2)))
    registered = tuple(BROKERS.put(str(each), broker(each, epoch=7)) for each in (1, 2, 3))
    store.write({}, (TOPICS.put("t", topic), state, *registered))
    writer = MetadataWriter(store)
    await writer.start()

    async def follow(before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        await asyncio.sleep(1)  # as with many partitions, or a slow disk
        partition.update_state(after.partition(topic, 0))

    writer.listen(follow)
    manager = manager_of(writer, partition)
    manager.start()
    store.fail()
    partition.update_follower(3, 7, 0, 2)
    await asyncio.sleep(UNKNOWN_OUTCOME_WAIT_S + isr_manager.RETRY_S / 2)
    store.show()
    await asyncio.sleep(isr_manager.RETRY_S / 2 + 0.25)
    assert writer.image.partition(topic, 0).isr == (1, 2, 3)
    partition.append_as_leader(batch(b"y"), 1)
    partition.update_follower(2, 7, 0, 3)
    assert partition.log.high_watermark == 2  # broker 3 is in sync, and lacks the record
    await asyncio.sleep(1)
    assert partition.isr == (1, 2, 3)
    partition.update_follower(3, 7, 0, 3)
    assert partition.log.high_watermark == 3
    await manager.stop()
    await writer.stop()


@in_virtual_time
async def test_the_followers_of_many_partitions_do_not_hold_the_event_loop(make_partition: Make) -> None:
    count = isr_manager.DECIDED_AT_ONCE_MAX + 1
    partitions, writer = [led(make_partition, index) for index in range(count)], UnavailableWriter(0)
    manager = manager_of(writer, *partitions)
    manager.start()
    for caught_up in (partitions[:1], partitions):
        for partition in caught_up:
            partition.update_follower(3, 7, 0, 2)
        await turns()
    assert [len(changes) for changes in writer.requested] == [1, count]
    assert writer.large_counts == [count]
    await manager.stop()
