"""Changes of in-sync replicas by the leaders of partitions (AlterPartition, KIP-497, in Apache Kafka)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_decision,
)
from barnabas.metadata.topics import PartitionRegistration


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The in-sync replicas that a leader requests for one of its partitions."""

    topic_id: bytes
    index: int
    leader_epoch: int
    partition_epoch: int  #: of the state on which the request is based
    isr: tuple[int, ...]
    broker_epochs: Mapping[int, int]  #: of the followers to add, as their fetches had it (KIP-903)


def decide_alter_isr(
    image: MetadataImage,
    broker_id: int,
    requested: Iterable[IsrChange],
    rules: ElectionRules = DEFAULT_RULES,
) -> Decision[int]:
    """Decide each change on its own; return the number of partitions that are changed.

    A request is ignored if it is based on an earlier state. A follower is not added if it is fenced, if its log
    directory has failed, or if it was started again since its fetch: then it may lack records.
    """
    up = brokers_up(image)
    changes = []
    for change in requested:
        topic = image.topic_by_id(change.topic_id)
        if topic is None or change.index >= topic.partition_count:
            continue
        state = image.partition(topic, change.index)
        if not _is_current(change, state, broker_id):
            continue
        available = up.difference(state.offline)
        isr = tuple(
            each for each in change.isr if each in state.isr or _may_join(image, change, each, available)
        )
        min_isr = rules.min_isr_with_elr(image, topic.name)
        after = build_partition_change(state, replace(state, isr=isr), up, min_isr=min_isr)
        if after is not state:
            changes.append(PartitionChange(topic, change.index, after))
    return partition_decision(len(changes), image, changes)


def _is_current(change: IsrChange, state: PartitionRegistration, broker_id: int) -> bool:
    return (state.leader, state.leader_epoch, state.partition_epoch) == (
        broker_id,
        change.leader_epoch,
        change.partition_epoch,
    ) and {broker_id} <= set(change.isr) <= set(state.replicas)


def _may_join(image: MetadataImage, change: IsrChange, follower: int, up: frozenset[int]) -> bool:
    return follower in up and image.brokers[str(follower)].epoch == change.broker_epochs.get(follower)
