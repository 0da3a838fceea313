"""Changes of in-sync replicas that the store does not commit at once."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, cast

from barnabas.base.clock import ManualClock
from barnabas.metadata.election_rules import DEFAULT_RULES
from barnabas.metadata.isr import IsrChange
from barnabas.metadata.topics import PartitionRegistration
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication import isr_manager
from barnabas.replication.isr_manager import IsrManager
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import batch
from support.loop import in_virtual_time, turns

Make = Callable[..., Partition]


class UnavailableWriter:
    """Fails a number of writes, then leaves everything as it is; remembers what was requested."""

    def __init__(self, failures_count: int) -> None:
        self.failures_left = failures_count
        self.requested: list[list[IsrChange]] = []
        self.partitions_max = 100

    async def write(self, decide: Any) -> int:
        self.requested.append(decide.keywords["requested"])
        if self.failures_left:
            self.failures_left -= 1
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Cannot write to the metadata store.")
        return 0


class OnePartition:
    def __init__(self, partition: Partition) -> None:
        self.on_caught_up: Callable[[Partition], None] = lambda partition: None
        self._partition = partition

    def __iter__(self) -> Iterator[Partition]:
        return iter([self._partition])


def led(make_partition: Make) -> Partition:
    partition = make_partition((1, 2, 3), PartitionRegistration(1, 0, (1, 2), replicas=(1, 2, 3)))
    for _ in range(2):
        partition.append_as_leader(batch(b"x"), 1)
    partition.update_follower(2, 0, 0, 2)
    return partition


def manager_of(partition: Partition, writer: UnavailableWriter) -> IsrManager:
    made = IsrManager(
        1,
        cast("ReplicaManager", replicas := OnePartition(partition)),
        cast("MetadataWriter", writer),
        ManualClock(),
        lag_ms_max=lambda: 30_000,
        rules=DEFAULT_RULES,
    )
    partition.on_caught_up = replicas.on_caught_up
    return made


@in_virtual_time
async def test_while_the_outcome_of_a_request_is_unknown_the_high_watermark_respects_it(
    make_partition: Make,
) -> None:
    partition, writer = led(make_partition), UnavailableWriter(failures_count=1)
    manager = manager_of(partition, writer)
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
    manager = manager_of(partition, writer)
    manager.start()
    partition.update_follower(3, 7, 0, 2)
    await asyncio.sleep(3 * isr_manager.RETRY_S)
    first, second, third, *_ = writer.requested
    assert first == second == third
    assert [change.isr for change in first] == [(1, 2, 3)]
    await manager.stop()
