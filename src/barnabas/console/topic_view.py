"""One topic: its partitions, offsets, sizes and the principal's permissions."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.client.core.errors import check
from barnabas.client.core.metadata import NO_LEADER
from barnabas.console.permissions import operations_in
from barnabas.wire.errors import KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


class PartitionView(NamedTuple):
    """A partition; offsets are None if its leader did not respond."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def state(self) -> str:
        """`leaderless`, `under-replicated` or `healthy`."""
        if self.leader == NO_LEADER:
            return "leaderless"
        return "under-replicated" if len(self.isr) < len(self.replicas) else "healthy"


class TopicView(NamedTuple):
    """A topic, and the operations that the principal may do (names of AclOperation)."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionView, ...]
    operations: frozenset[str]

    @property
    def led(self) -> list[TopicPartition]:
        """The partitions with a leader."""
        return [
            TopicPartition(self.name, each.partition) for each in self.partitions if each.leader != NO_LEADER
        ]


class Reach(NamedTuple):
    """First and end offset of a partition."""

    first: int
    end: int

    @property
    def records_count(self) -> int:
        """Number of offsets; compaction and transactions leave fewer records."""
        return self.end - self.first


async def find_topic(admin: Admin, name: str) -> TopicView:
    """The topic of that name.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    response: MetadataResponse = await admin.send(request)
    check(response.error_code)
    [topic] = response.topics
    check(topic.error_code, f"topic '{name}'")
    partitions = tuple(
        PartitionView(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    )
    operations = operations_in(topic.topic_authorized_operations)
    return TopicView(name, uuid_to_text(topic.topic_id), topic.is_internal, partitions, operations)


async def reaches(
    admin: Admin, partitions: Iterable[TopicPartition], isolation: Isolation = Isolation.READ_UNCOMMITTED
) -> dict[TopicPartition, Reach]:
    """Return first and end offset of the partitions whose leaders respond.

    With read committed, the end is the last stable offset.
    """
    wanted = list(partitions)
    if not wanted:
        return {}
    firsts, ends = await asyncio.gather(
        admin.list_offsets(dict.fromkeys(wanted, EARLIEST)),
        admin.list_offsets(dict.fromkeys(wanted, LATEST), isolation),
    )
    found = {}
    for tp in wanted:
        first, end = firsts.get(tp), ends.get(tp)
        if isinstance(first, ListedOffset) and isinstance(end, ListedOffset):
            found[tp] = Reach(first.offset, end.offset)
    return found


async def sizes(admin: Admin, topic: TopicView) -> Mapping[int, int]:
    """Bytes of each partition on its leader's disk; empty if the principal may not see them."""
    nodes = {each.leader for each in topic.partitions if each.leader != NO_LEADER}
    found: dict[int, int] = {}
    leaders = {each.partition: each.leader for each in topic.partitions}
    for node in sorted(nodes):
        try:
            directories = await admin.describe_log_dirs(node, topic.led)
        except KafkaError:
            return {}
        for directory in directories:
            for tp, replica in directory.replicas.items():
                if not replica.is_future and leaders.get(tp.partition) == node:
                    found[tp.partition] = replica.size_bytes
    return found
