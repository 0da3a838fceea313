"""Changes of partitions: leader, in-sync replicas, reassignment.

As in Apache Kafka's controller, all changes use one function, because every change may complete a reassignment or
require an election.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.config.config_resource import EVERY_BROKER
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
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

ResponseT = TypeVar("ResponseT")


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
    *,
    min_isr: int | None = None,
    unclean: Collection[int] = (),
) -> PartitionRegistration:
    """Complete the reassignment of `target` if possible, and elect a leader from the active brokers.

    The leader epoch increases with every change of the leader and every removed replica, the partition epoch with every
    change. If nothing changes, `before` itself is returned.

    :param min_isr: min.insync.replicas. While fewer are in sync, the high watermark stands still, so replicas that
        leave the ISR remain eligible leaders (KIP-966), and the ISR may become empty. None if the cluster has no
        eligible leader replicas: then the last in-sync replica stays.
    :param unclean: Brokers that may lack records, because they were not stopped in order.
    """
    target = _complete_reassignment(target)
    if target.offline:
        target = replace(target, offline=tuple(each for each in target.offline if each in target.replicas))
    if min_isr is None:
        target = replace(target, elr=(), last_known_elr=())
    else:
        elr = _eligible(before, target, min(min_isr, len(target.replicas)), unclean)
        target = replace(target, elr=elr, last_known_elr=_last_known_leader(before))
    available = [broker for broker in up if broker not in target.offline]
    leader = _leader(target, available, election)
    isr, elr = target.isr, target.elr
    if min_isr is None:
        isr = isr or before.isr
    if leader != NO_LEADER and leader not in isr:
        # Others may have records that the leader lacks. If it was eligible, they have what is below the high watermark.
        isr, elr = (leader,), tuple(broker for broker in elr if leader in elr and broker != leader)
    last_known_elr = target.last_known_elr if leader == NO_LEADER else ()
    changed = replace(target, leader=leader, isr=isr, elr=elr, last_known_elr=last_known_elr)
    if changed == before:
        return before
    has_new_epoch = leader != before.leader or not set(before.replicas) <= set(changed.replicas)
    return replace(
        changed,
        leader_epoch=before.leader_epoch + has_new_epoch,
        partition_epoch=before.partition_epoch + 1,
    )


def _eligible(
    before: PartitionRegistration, target: PartitionRegistration, min_isr: int, unclean: Collection[int]
) -> tuple[int, ...]:
    """Return the replicas that have all records below the high watermark, besides those in sync."""
    if len(target.isr) >= min_isr:
        return ()
    # If min_isr has been lowered, the high watermark may have risen without the replicas that were eligible.
    eligible = {*before.isr, *(before.elr if len(before.isr) < min_isr else ())}
    return tuple(sorted(eligible.intersection(target.replicas).difference(target.isr, unclean)))


def _last_known_leader(before: PartitionRegistration) -> tuple[int, ...]:
    return before.last_known_elr or ((before.leader,) if before.leader != NO_LEADER else ())


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


def _leader(state: PartitionRegistration, available: Collection[int], election: Election) -> int:
    valid = state.isr or state.elr
    candidates = [broker for broker in state.replicas if broker in valid and broker in available]
    if election is Election.PREFERRED and state.replicas[0] in candidates:
        return state.replicas[0]
    if state.leader in candidates:
        return state.leader
    if not valid:  # after an unclean stop of the last one: the leader has the most records (KIP-966)
        candidates += [broker for broker in state.last_known_elr if broker in available]
    if election is Election.UNCLEAN:
        candidates += [broker for broker in state.replicas if broker in available]
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
        if change.state.elr:  # eligible as long as min.insync.replicas does not change
            for key in (TOPIC_CONFIGS.key(topic.name), BROKER_CONFIGS.key(EVERY_BROKER)):
                reads[key] = image.revision_of(key)
        reads |= {
            BROKERS.key(str(replica)): image.brokers.revision(str(replica))
            for replica in change.state.replicas
        }
    return tuple(puts.values()), reads


def partition_decision(
    response: ResponseT, image: MetadataImage, changes: Iterable[PartitionChange]
) -> Decision[ResponseT]:
    """Decide to write these states. A state that this creates is removed only with its topic, on which it depends."""
    puts, reads = partition_puts(image, changes)
    return Decision(response, puts, reads, is_idempotent=bool(puts))
