"""Which partitions a broker copies, and what it does with logs of which a power failure has taken a part."""

from collections.abc import Callable
from typing import Any, cast

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import FetchSettings
from barnabas.replication.replica_fetchers import ReplicaFetchers
from support.loop import on_loop
from support.throttles import throttle

Make = Callable[..., Partition]
FORMER, PRESENT = (
    PartitionRegistration(leader, leader_epoch=epoch, isr=(leader,), replicas=(1, 2))
    for leader, epoch in ((1, 3), (1, 4))
)


class Replicas(list[Partition]):
    """The replicas of broker 1."""

    def find_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return next((each for each in self if (each.topic_id, each.index) == (topic_id, index)), None)


def fetchers_of(replicas: Replicas) -> ReplicaFetchers:
    return ReplicaFetchers(
        1,
        cast("Any", replicas),
        cast("Any", None),
        ManualClock(),
        lambda: FetchSettings(500, 1 << 20, 1 << 20, 100),
        throttle(),
        Flusher(),
    )


@on_loop
async def test_a_gap_is_kept_until_the_broker_leads_after_its_registration(make_partition: Make) -> None:
    partition = make_partition(replicas=(1, 2), state=FORMER)
    partition.log.gap_offset = 0
    partition.update_state(PRESENT)
    assert partition.is_leader
    assert partition.log.gap_offset == 0, "the epoch may be one of which it has lost records"
    fetchers = fetchers_of(Replicas([partition]))
    fetchers.start(broker_epoch=7)
    assert partition.log.gap_offset is None
    await fetchers.stop()


@on_loop
async def test_a_replica_whose_log_is_created_later_is_copied(make_partition: Make) -> None:
    replicas = Replicas()
    fetchers = fetchers_of(replicas)
    fetchers.start(broker_epoch=7)
    state = PartitionRegistration(2, leader_epoch=1, isr=(2,), replicas=(2, 1))
    partition = make_partition(replicas=(2, 1), state=state)
    replicas.append(partition)
    fetchers.follow_opened([TopicIdPartition(partition.topic_id, 0)])
    assert "2" in fetchers.statistics()
    await fetchers.stop()
