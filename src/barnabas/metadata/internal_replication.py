"""Adds replicas to internal topics that were created when the cluster had fewer brokers."""

from collections.abc import Callable
from dataclasses import replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.internal_topics import BROKER_TOPICS
from barnabas.metadata.partition_change_builder import (
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_decision,
)
from barnabas.metadata.placement import choose
from barnabas.metadata.store import PARTITIONS_MAX
from barnabas.metadata.topic_creation import placeable_brokers


def decide_replicate_internal_topics(
    image: MetadataImage,
    replication_factor: Callable[[str, int], int],
    rules: ElectionRules = DEFAULT_RULES,
    limit: int = PARTITIONS_MAX,
) -> Decision[int]:
    """Begin to add replicas where an internal topic has fewer than it would get now; return the number of partitions,
    at most `limit`.

    :param replication_factor: (topic, number of brokers) -> the number of replicas as configured.
    """
    racks, up = placeable_brokers(image).up, brokers_up(image)
    changes = []
    for name in sorted(BROKER_TOPICS & image.topics.keys()):
        topic = image.topics[name]
        count = min(replication_factor(name, len(racks)), len(racks))
        for index in range(topic.partition_count):
            state = image.partition(topic, index)
            if state.is_reassigning or len(state.replicas) >= count:
                continue
            others = [broker_id for broker_id in racks if broker_id not in state.replicas]
            first = index % len(others)  # spreads the replicas over the brokers
            candidates = (*others[first:], *others[:first])
            added = choose(candidates, state.replicas, count - len(state.replicas), racks)
            target = replace(state, replicas=(*state.replicas, *added), adding=tuple(sorted(added)))
            after = build_partition_change(state, target, up, min_isr=rules.min_isr_with_elr(image, name))
            changes.append(PartitionChange(topic, index, after))
            if len(changes) == limit:
                return partition_decision(len(changes), image, changes)
    return partition_decision(len(changes), image, changes)
