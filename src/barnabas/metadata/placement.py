"""Assignment of replicas to brokers: given and checked, or spread over the brokers that are up."""

import random
from collections.abc import Sequence

from barnabas.wire.errors import ErrorCode, KafkaError

Assignments = tuple[tuple[int, ...], ...]


def spread(
    broker_ids: Sequence[int], partition_count: int, replication_factor: int, rng: random.Random
) -> Assignments:
    """Return replicas for `partition_count` partitions: leaders in turn from a random start, followers after them.

    :raises KafkaError: INVALID_REPLICATION_FACTOR if there are fewer brokers than replicas.
    """
    check_replication_factor(broker_ids, replication_factor)
    ring = sorted(broker_ids)
    start = rng.randrange(len(ring))
    return tuple(
        tuple(ring[(start + partition + replica) % len(ring)] for replica in range(replication_factor))
        for partition in range(partition_count)
    )


def check_replication_factor(broker_ids: Sequence[int], replication_factor: int) -> None:
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
