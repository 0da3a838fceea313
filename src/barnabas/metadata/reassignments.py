"""Reassignments of partitions to other replicas (KIP-455).

New replicas are added immediately; old ones are removed when those are in sync. A new target replaces the previous one,
and null cancels the reassignment.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    PartitionOutcome,
    TopicOutcome,
    brokers_up,
    build_partition_change,
    find_partition,
    partition_decision,
)
from barnabas.metadata.placement import check_replicas
from barnabas.metadata.topics import PartitionRegistration
from barnabas.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Target:
    """The new replicas of one partition; None cancels its reassignment."""

    index: int
    replicas: Sequence[int] | None


def decide_reassign(
    image: MetadataImage,
    requested: Iterable[tuple[str, Iterable[Target]]],
    rules: ElectionRules = DEFAULT_RULES,
    *,
    allows_factor_change: bool = True,
) -> Decision[list[TopicOutcome]]:
    """Start, replace or cancel the reassignment of each partition, each on its own."""
    outcomes = []
    changes: list[PartitionChange] = []
    for name, targets in requested:
        partitions = []
        for target in targets:
            try:
                changes += _reassign(image, name, target, rules, allows_factor_change=allows_factor_change)
            except KafkaError as error:
                partitions.append(PartitionOutcome(target.index, error.without_traceback()))
            else:
                partitions.append(PartitionOutcome(target.index))
        outcomes.append(TopicOutcome(name, partitions))
    return partition_decision(outcomes, image, changes)


def _reassign(
    image: MetadataImage, name: str, target: Target, rules: ElectionRules, *, allows_factor_change: bool
) -> list[PartitionChange]:
    """Return what a target changes; nothing if the partition has these replicas already."""
    topic, state = find_partition(image, name, target.index)
    election = Election.ONLINE
    if target.replicas is None:
        changed, election = _cancel_reassignment(state, f"{name}-{target.index}", rules.allows_unclean(name))
    else:
        check_replicas(target.replicas, [broker.broker_id for broker in image.brokers.values()], None)
        if not allows_factor_change:
            _check_factor(state, target.replicas, f"{name}-{target.index}")
        changed = _begin_reassignment(state, target.replicas)
    min_isr = rules.min_isr_with_elr(image, name)
    after = build_partition_change(state, changed, brokers_up(image), election, min_isr=min_isr)
    return [] if after is state else [PartitionChange(topic, target.index, after)]


def _begin_reassignment(state: PartitionRegistration, replicas: Sequence[int]) -> PartitionRegistration:
    removing = tuple(sorted(set(state.replicas) - set(replicas)))
    current = set(state.replicas) - set(state.adding)
    adding = tuple(sorted(set(replicas) - current))
    return replace(state, replicas=(*replicas, *removing), adding=adding, removing=removing)


def _check_factor(state: PartitionRegistration, replicas: Sequence[int], partition: str) -> None:
    """Check that the number of replicas does not change, if that is required (KIP-860)."""
    factor = len(state.replicas) - len(state.removing)
    if len(replicas) != factor:
        message = f"{partition} has a replication factor of {factor}, which the replicas {list(replicas)} would change."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _cancel_reassignment(
    state: PartitionRegistration, partition: str, allows_unclean: bool
) -> tuple[PartitionRegistration, Election]:
    """Return the partition without the added replicas, and how to elect its leader."""
    if not state.is_reassigning:
        message = f"No reassignment of {partition} is in progress."
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
    replicas = tuple(broker for broker in state.replicas if broker not in state.adding)
    isr = tuple(broker for broker in state.isr if broker not in state.adding)
    if not replicas:
        message = f"The reassignment of {partition} cannot be cancelled: all its replicas are being added."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    if not isr and not allows_unclean:
        message = (
            f"The reassignment of {partition} cannot be cancelled: none of its earlier replicas is in sync, and "
            "unclean.leader.election.enable is false."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    election = Election.ONLINE if isr else Election.UNCLEAN
    return replace(state, replicas=replicas, isr=isr or replicas[:1], adding=(), removing=()), election


def reassignments(
    image: MetadataImage, requested: Iterable[tuple[str, Iterable[int]]] | None
) -> Mapping[str, Mapping[int, PartitionRegistration]]:
    """Return the reassignments of the named partitions or (None) of all; topics without any are left out."""
    moving: dict[str, dict[int, PartitionRegistration]] = {}
    for key, state in image.partition_states.items():
        if state.is_reassigning:
            topic_id, _, number = key.partition("/")
            moving.setdefault(image.topic_names[bytes.fromhex(topic_id)], {})[int(number)] = state
    if requested is None:
        return moving
    in_progress: dict[str, dict[int, PartitionRegistration]] = {}
    for name, indexes in requested:
        partitions = moving.get(name, {})
        for index in indexes:
            if index in partitions:
                in_progress.setdefault(name, {})[index] = partitions[index]
    return in_progress
