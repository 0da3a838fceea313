"""Changes of partitions: leader, in-sync replicas, reassignment.

As in Apache Kafka's controller, all changes use one function, because every change may complete a reassignment or
require an election.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import (
    NO_LEADER,
    PARTITION_STATES,
    TOPICS,
    PartitionRegistration,
    TopicImage,
    partition_key,
)
from barnabas.wire.errors import ErrorCode, KafkaError


class Election(IntEnum):
    """How a leader is elected; the first two are the protocol's election types (KIP-460)."""

    PREFERRED = 0  #: the first replica, if it is in sync
    UNCLEAN = 1  #: a replica that is not in sync if no other is available: records may be lost
    ONLINE = 2  #: the present leader, else the first replica in sync


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """The result for one partition of a request."""

    index: int
    error: KafkaError | None = None


class TopicOutcome(NamedTuple):
    """The results for the partitions of one topic in a request."""

    name: str
    partitions: list[PartitionOutcome]


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The new state of a partition."""

    topic: TopicImage
    index: int
    state: PartitionRegistration


def brokers_up(image: MetadataImage) -> frozenset[int]:
    """Return the brokers that may lead: registered and not fenced."""
    return frozenset(broker.broker_id for broker in image.brokers.values() if not broker.fenced)


def build_partition_change(
    before: PartitionRegistration,
    target: PartitionRegistration,
    up: Collection[int],
    election: Election = Election.ONLINE,
) -> PartitionRegistration:
    """Complete the reassignment of `target` if possible, and elect a leader from the active brokers.

    The leader epoch increases with every change of the leader and every removed replica, the partition epoch with every
    change. If nothing changes, `before` itself is returned.
    """
    target = _complete_reassignment(target)
    leader = _leader(target, up, election)
    isr = target.isr or before.isr
    if leader != NO_LEADER and leader not in isr:
        isr = (leader,)  # an unclean election: no other replica is known to have what the leader has
    changed = replace(target, leader=leader, isr=isr)
    if changed == before:
        return before
    has_new_epoch = leader != before.leader or not set(before.replicas) <= set(changed.replicas)
    return replace(
        changed,
        leader_epoch=before.leader_epoch + has_new_epoch,
        partition_epoch=before.partition_epoch + 1,
    )


def _complete_reassignment(state: PartitionRegistration) -> PartitionRegistration:
    """Return the state without the replicas that are being removed, if all added ones are in sync (KIP-455).

    If more replicas are removed than added, all remaining ones must be in sync.
    """
    replicas = tuple(broker for broker in state.replicas if broker not in state.removing)
    isr = tuple(broker for broker in state.isr if broker not in state.removing)
    needed = replicas if len(state.removing) > len(state.adding) else state.adding
    if not state.is_reassigning or not isr or not set(needed) <= set(isr):
        return state
    return replace(state, replicas=replicas, isr=isr, adding=(), removing=())


def _leader(state: PartitionRegistration, up: Collection[int], election: Election) -> int:
    in_sync = [broker for broker in state.replicas if broker in state.isr and broker in up]
    if election is Election.PREFERRED and state.replicas[0] in in_sync:
        return state.replicas[0]
    if state.leader in in_sync:
        return state.leader
    candidates = in_sync
    if election is Election.UNCLEAN:
        candidates += [broker for broker in state.replicas if broker in up]
    return candidates[0] if candidates else NO_LEADER


def find_partition(image: MetadataImage, name: str, index: int) -> tuple[TopicImage, PartitionRegistration]:
    """Return a partition and its state.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    if not 0 <= index < topic.partition_count:
        message = f"Topic '{name}' has partitions 0 to {topic.partition_count - 1}, not {index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return topic, image.partition(topic, index)


def partition_puts(
    image: MetadataImage, changes: Iterable[PartitionChange]
) -> tuple[tuple[StoreChange, ...], dict[str, int]]:
    """Return the changes that write these states, and what they depend on: topics, previous states, brokers."""
    puts: dict[str, StoreChange] = {}
    reads: dict[str, int] = {}
    for change in changes:
        topic = change.topic
        put = PARTITION_STATES.put(partition_key(topic.topic_id, change.index), change.state)
        puts[put.key] = put
        reads[put.key] = image.partition_revision(topic, change.index)
        reads[TOPICS.key(topic.name)] = image.topics.revision(topic.name)
        reads |= {
            BROKERS.key(str(replica)): image.brokers.revision(str(replica))
            for replica in change.state.replicas
        }
    return tuple(puts.values()), reads
