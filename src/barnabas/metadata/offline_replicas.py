"""Replicas whose log directories have failed: they are not in sync, and do not lead (KIP-112)."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_decision,
)
from barnabas.metadata.store import PARTITIONS_MAX
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage


def with_offline(state: PartitionRegistration, broker_id: int, *, is_offline: bool) -> PartitionRegistration:
    """Return the state to build for a replica that is offline or not; one that is offline leaves the ISR."""
    others = tuple(each for each in state.offline if each != broker_id)
    if not is_offline:
        return replace(state, offline=others) if others != state.offline else state
    isr = tuple(each for each in state.isr if each != broker_id)
    return replace(state, isr=isr, offline=tuple(sorted((*others, broker_id))))


def without_in_sync(
    state: PartitionRegistration, broker_id: int, min_isr: int | None
) -> PartitionRegistration:
    """Remove a broker from the ISR; without eligible leader replicas (`min_isr` is None) the last one stays."""
    isr = tuple(each for each in state.isr if each != broker_id)
    return replace(state, isr=isr if min_isr is not None else isr or state.isr)


def build_without_records(
    before: PartitionRegistration,
    target: PartitionRegistration,
    broker_id: int,
    up: Collection[int],
    min_isr: int | None,
) -> PartitionRegistration:
    """Return the state of a partition whose replica on a broker is empty: it is neither in sync nor eligible.

    If it was the last one, only an unclean election makes the partition available.
    """
    target = without_in_sync(target, broker_id, min_isr)
    others = set(up) - {broker_id}
    after = build_partition_change(before, target, others, min_isr=min_isr, unclean=(broker_id,))
    if broker_id not in (*after.isr, *after.last_known_elr):
        return after
    return replace(
        after,
        leader=NO_LEADER,
        isr=(),
        last_known_elr=(),
        leader_epoch=before.leader_epoch + 1,
        partition_epoch=before.partition_epoch + 1,
    )


def decide_report_offline(
    image: MetadataImage,
    broker_id: int,
    offline: Collection[TopicIdPartition],
    rules: ElectionRules = DEFAULT_RULES,
    limit: int = PARTITIONS_MAX,
) -> Decision[int]:
    """Record that log directories of a broker have failed, and elect other leaders for the replicas in them.

    Return the number of changed partitions, at most `limit`.
    """
    up = brokers_up(image)
    changes: list[PartitionChange] = []
    for topic, index, state in _replicas(image, broker_id, offline):
        if broker_id not in state.offline:
            target = with_offline(state, broker_id, is_offline=True)
            min_isr = rules.min_isr_with_elr(image, topic.name)
            after = build_partition_change(state, target, up, min_isr=min_isr)
            changes.append(PartitionChange(topic, index, after))
            if len(changes) == limit:
                break
    return partition_decision(len(changes), image, changes)


def decide_report_lost(
    image: MetadataImage,
    broker_id: int,
    lost: Collection[TopicIdPartition],
    rules: ElectionRules = DEFAULT_RULES,
) -> Decision[None]:
    """Record that replicas of a broker have no log, although they may be in sync; they can be copied then."""
    up = brokers_up(image)
    changes: list[PartitionChange] = []
    for topic, index, state in _replicas(image, broker_id, lost):
        min_isr = rules.min_isr_with_elr(image, topic.name)
        after = build_without_records(state, state, broker_id, up, min_isr)
        if after is not state:
            changes.append(PartitionChange(topic, index, after))
    return partition_decision(None, image, changes)


def _replicas(
    image: MetadataImage, broker_id: int, partitions: Collection[TopicIdPartition]
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """Yield the partitions that exist and have a replica on the broker."""
    for topic_id, index in sorted(partitions):
        topic = image.topic_by_id(topic_id)
        if topic is not None and index < topic.partition_count:
            state = image.partition(topic, index)
            if broker_id in state.replicas:
                yield topic, index, state
