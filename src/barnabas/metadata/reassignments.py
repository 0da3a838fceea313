"""Reassignments, decided: where partitions are to be, and how they get there (KIP-455).

The replicas that come are added at once and the ones that go stay until those are in sync. A new target replaces the
one before it; null calls the reassignment off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    PartitionOutcome,
    TopicOutcome,
    brokers_up,
    build_partition_change,
    find_partition,
    partition_puts,
)
from barnabas.metadata.placement import check_replicas
from barnabas.metadata.topics import PartitionRegistration
from barnabas.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Target:
    """Where one partition is to be; None calls off what is under way."""

    index: int
    replicas: Sequence[int] | None


class ReassignmentRules(NamedTuple):
    """What the request and the broker's configuration allow."""

    allows_factor_change: bool
    #: topic name -> whether it may be led by a replica that is not in sync
    allows_unclean_election: Callable[[str], bool]


def decide_reassign(
    image: MetadataImage, requested: Iterable[tuple[str, Iterable[Target]]], rules: ReassignmentRules
) -> Decision[list[TopicOutcome]]:
    """Begin, replace or call off the reassignment of each partition, whatever becomes of its neighbours."""
    outcomes = []
    changes: list[PartitionChange] = []
    for name, targets in requested:
        partitions = []
        for target in targets:
            try:
                changes += _reassign(image, name, target, rules)
            except KafkaError as error:
                partitions.append(PartitionOutcome(target.index, error.kept()))
            else:
                partitions.append(PartitionOutcome(target.index))
        outcomes.append(TopicOutcome(name, partitions))
    return Decision(outcomes, *partition_puts(image, changes))


def _reassign(
    image: MetadataImage, name: str, target: Target, rules: ReassignmentRules
) -> list[PartitionChange]:
    """What a target changes; nothing when the partition is there already."""
    topic, state = find_partition(image, name, target.index)
    up = brokers_up(image)
    if target.replicas is None:
        wanted, election = _called_off(state, f"{name}-{target.index}", rules.allows_unclean_election(name))
        after = build_partition_change(state, wanted, up, election)
    else:
        check_replicas(target.replicas, [broker.broker_id for broker in image.brokers.values()], None)
        if not rules.allows_factor_change:
            _check_factor(state, target.replicas, f"{name}-{target.index}")
        after = build_partition_change(state, _towards(state, target.replicas), up)
    return [] if after is state else [PartitionChange(topic, target.index, after)]


def _towards(state: PartitionRegistration, replicas: Sequence[int]) -> PartitionRegistration:
    removing = tuple(sorted(set(state.replicas) - set(replicas)))
    kept = set(state.replicas) - set(state.adding)
    adding = tuple(sorted(set(replicas) - kept))
    return replace(state, replicas=(*replicas, *removing), adding=adding, removing=removing)


def _check_factor(state: PartitionRegistration, replicas: Sequence[int], partition: str) -> None:
    """Refuse another number of replicas than the partition has, or is to have (KIP-860)."""
    factor = len(state.replicas) - len(state.removing)
    if len(replicas) != factor:
        message = f"{partition} has a replication factor of {factor}: {list(replicas)} would change it."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _called_off(
    state: PartitionRegistration, partition: str, allows_unclean: bool
) -> tuple[PartitionRegistration, Election]:
    """The partition without what was being added, and how its leader is found."""
    if not state.is_reassigning:
        message = f"No reassignment of {partition} is in progress."
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
    replicas = tuple(broker for broker in state.replicas if broker not in state.adding)
    isr = tuple(broker for broker in state.isr if broker not in state.adding)
    if not replicas:
        message = f"The reassignment of {partition} cannot be called off: all its replicas are being added."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    if not isr and not allows_unclean:
        message = (
            f"The reassignment of {partition} cannot be called off: none of its former replicas is in sync, and "
            "unclean.leader.election.enable is false."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    election = Election.ONLINE if isr else Election.UNCLEAN
    return replace(state, replicas=replicas, isr=isr or replicas[:1], adding=(), removing=()), election


def decide_progress(
    image: MetadataImage, name: str, index: int, isr: Sequence[int]
) -> Decision[PartitionRegistration]:
    """Take over a partition's in-sync replicas, which completes its reassignment when all that come are among them.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic, state = find_partition(image, name, index)
    after = build_partition_change(state, replace(state, isr=tuple(isr)), brokers_up(image))
    changes = [] if after is state else [PartitionChange(topic, index, after)]
    return Decision(after, *partition_puts(image, changes))


def reassignments(
    image: MetadataImage, requested: Iterable[tuple[str, Iterable[int]]] | None
) -> Mapping[str, Mapping[int, PartitionRegistration]]:
    """The partitions that are moving, of those named or (None) of all; topics without any are left out."""
    moving: dict[str, dict[int, PartitionRegistration]] = {}
    for key, state in image.partition_states.items():
        if state.is_reassigning:
            topic_id, _, number = key.partition("/")
            moving.setdefault(image.topic_names[bytes.fromhex(topic_id)], {})[int(number)] = state
    if requested is None:
        return moving
    found: dict[str, dict[int, PartitionRegistration]] = {}
    for name, indexes in requested:
        partitions = moving.get(name, {})
        for index in indexes:
            if index in partitions:
                found.setdefault(name, {})[index] = partitions[index]
    return found
