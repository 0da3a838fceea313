"""The coordinators of a broker, put together."""

from collections.abc import Callable
from random import Random

from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.coordinator import Coordinator
from barnabas.groups import shard as groups
from barnabas.groups.surroundings import Surroundings
from barnabas.metadata.image import Image
from barnabas.metadata.internal_topics import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.replication.flusher import Flusher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.transactions import shard as transactions
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, TRANSACTION_RECORDS
from barnabas.wire.records.compression import Compression

GroupCoordinator = Coordinator[groups.GroupShard]
TransactionCoordinator = Coordinator[transactions.TransactionShard]


def group_coordinator(
    config: Callable[[], BrokerConfig],
    image: Callable[[], Image],
    replicas: ReplicaManager,
    flusher: Flusher,
    clock: Clock,
    dice: Random,
) -> GroupCoordinator:
    """Coordinates the groups whose partitions of `__consumer_offsets` this broker leads.

    `config` and `image` give what holds at the moment.
    """
    surroundings = Surroundings(config, image, dice)
    return Coordinator(
        GROUP_TOPIC,
        lambda index: groups.GroupShard(surroundings),
        GROUP_RECORDS,
        replicas,
        flusher,
        clock,
        compression=Compression(config().integer("offsets.topic.compression.codec")),
    )


def transaction_coordinator(
    config: Callable[[], BrokerConfig],
    image: Callable[[], Image],
    replicas: ReplicaManager,
    flusher: Flusher,
    clock: Clock,
) -> TransactionCoordinator:
    """Coordinates the transactional ids whose partitions of `__transaction_state` this broker leads."""
    surroundings = transactions.Surroundings(config, image)
    return Coordinator(
        TRANSACTION_TOPIC,
        lambda index: transactions.TransactionShard(surroundings),
        TRANSACTION_RECORDS,
        replicas,
        flusher,
        clock,
    )
