"""Assignment of replicas to brokers: given and checked, or spread over the brokers that are up and their racks."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

Assignments = tuple[tuple[int, ...], ...]


class PlaceableBrokers(NamedTuple):
    """The brokers that may get replicas, and the rack of each; None for a broker without one."""

    up: Mapping[int, str | None]
    fenced: Mapping[int, str | None] = MappingProxyType(
        {}
    )  #: they get replicas only if there are too few others

    @property
    def ids(self) -> list[int]:
        return [*self.up, *self.fenced]


def spread(
    brokers: PlaceableBrokers, partition_count: int, replication_factor: int, rng: random.Random
) -> Assignments:
    """Return replicas for `partition_count` partitions.

    Leaders take turns from a random start. The replicas of a partition are in as many racks as possible. The followers
    of one leader are different ones each time, so that the others share its work when it is down.

    :raises KafkaError: INVALID_REPLICATION_FACTOR if there are fewer brokers than replicas, or all are fenced.
    """
    check_replication_factor(brokers.ids, replication_factor)
    if not brokers.up:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are fenced.")
    ring = _alternating_racks(brokers.up)
    start = rng.randrange(len(ring))
    racks = {**brokers.up, **brokers.fenced}
    fenced_count = max(0, replication_factor - len(ring))
    assignments = []
    for partition in range(partition_count):
        at = (start + partition) % len(ring)
        others = (*ring[at + 1 :], *ring[:at])
        shift = partition // len(ring) % len(others) if others else 0
        candidates = (*others[shift:], *others[:shift])
        replicas = [ring[at]]
        replicas += choose(candidates, replicas, replication_factor - fenced_count - 1, racks)
        replicas += choose(brokers.fenced, replicas, fenced_count, racks)
        assignments.append(tuple(replicas))
    return tuple(assignments)


def choose(
    candidates: Iterable[int], replicas: Iterable[int], count: int, racks: Mapping[int, str | None]
) -> list[int]:
    """Return `count` further replicas from the candidates: the first ones in the racks with the fewest replicas."""
    left = list(candidates)
    in_rack = Counter(racks.get(replica) for replica in replicas)
    chosen = []
    for _ in range(count):
        best = min(left, key=lambda broker_id: in_rack[racks.get(broker_id)])
        left.remove(best)
        in_rack[racks.get(best)] += 1
        chosen.append(best)
    return chosen


def _alternating_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Return the brokers so that neighbours are in different racks where possible."""
    by_rack: dict[str | None, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    columns = [by_rack[rack] for rack in sorted(by_rack, key=lambda rack: (rack is None, rack))]
    rows = zip_longest(*columns)
    return [broker_id for row in rows for broker_id in row if broker_id is not None]


def check_replication_factor(broker_ids: Collection[int], replication_factor: int) -> None:
    """Check that there are at most as many replicas as brokers.

    :raises KafkaError: INVALID_REPLICATION_FACTOR.
    """
    if replication_factor > len(broker_ids):
        message = (
            f"A replication factor of {replication_factor} cannot be reached: {len(broker_ids)} "
            f"broker{' is' if len(broker_ids) == 1 else 's are'} registered and not cordoned."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def check_replicas(
    replicas: Sequence[int], broker_ids: Sequence[int], replication_factor: int | None
) -> None:
    """Check given replicas: not empty, no duplicates, known brokers, the expected number.

    :raises KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        why = "The manual partition assignment includes an empty replica list."
    elif len(set(replicas)) < len(replicas):
        why = f"The manual partition assignment {list(replicas)} names a broker twice."
    elif unknown := [broker for broker in replicas if broker not in broker_ids]:
        why = f"The manual partition assignment includes broker {unknown[0]}, which is not registered."
    elif replication_factor is not None and len(replicas) != replication_factor:
        why = (
            f"The manual partition assignment {list(replicas)} has {len(replicas)} replicas where the other "
            f"partitions have {replication_factor}."
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
