"""The replicas that a request gives for new partitions, and the first states of partitions."""

from collections.abc import Sequence

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import brokers_up
from barnabas.metadata.placement import check_replicas
from barnabas.metadata.store import NEVER, StoreChange
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, TopicImage, partition_key
from barnabas.wire.errors import ErrorCode, KafkaError


def first_states(
    image: MetadataImage, topic: TopicImage, first_index: int = 0
) -> tuple[list[StoreChange], dict[str, int]]:
    """Return the states of new partitions with fenced replicas, which are not in sync, and what they depend on.

    The other new partitions need none (`initial_state`). All depend on their brokers: if one is fenced meanwhile, the
    decision is made again.
    """
    up = brokers_up(image)
    puts = []
    for index, replicas in enumerate(topic.assignments[first_index:], first_index):
        isr = tuple(broker_id for broker_id in replicas if broker_id in up)
        if isr != replicas:
            state = PartitionRegistration(isr[0], 0, isr)
            puts.append(PARTITION_STATES.put(partition_key(topic.topic_id, index), state))
    used = sorted({broker_id for replicas in topic.assignments[first_index:] for broker_id in replicas})
    reads = {BROKERS.key(str(broker_id)): image.brokers.revision(str(broker_id)) for broker_id in used}
    return puts, reads | {put.key: NEVER for put in puts}


def check_given_replicas(
    image: MetadataImage, index: int, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Check the replicas that a request gives for a new partition; one of them must be able to lead it.

    :raises KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    check_replicas(replicas, [broker.broker_id for broker in image.brokers.values()], replication_factor)
    up = brokers_up(image)
    if not any(broker_id in up for broker_id in replicas):
        message = f"All brokers of the manual assignment {list(replicas)} of partition {index} are fenced."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
