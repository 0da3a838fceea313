"""The coordinators of a broker, put together."""

from collections.abc import Callable, Collection, Mapping
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.coordinator import Coordinator
from barnabas.groups import shard as groups
from barnabas.groups.surroundings import Surroundings
from barnabas.metadata.image import Image
from barnabas.metadata.internal_topics import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.end_markers import write_end_markers
from barnabas.replication.flusher import Flusher
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.transactions import shard as transactions
from barnabas.transactions.markers import MarkerSender
from barnabas.transactions.verification import CoordinatorVerifier
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, TRANSACTION_RECORDS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndMarker

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


class LocalMarkers:
    """Writes markers to partitions of this broker, the only one that there is: a `MarkerWriter`."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], Image],
        replicas: ReplicaManager,
        flusher: Flusher,
    ) -> None:
        self._config = config
        self._image = image
        self._replicas = replicas
        self._flusher = flusher

    async def write(
        self, marker: EndMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        """What became of each partition's marker."""
        outcomes = await write_end_markers(
            self._replicas,
            self._flusher,
            marker,
            partitions,
            transaction_version=transaction_version,
            timeout_ms=self._config().integer("request.timeout.ms"),
        )
        return {partition: self._settle(partition, code) for partition, code in outcomes.items()}

    def _settle(self, partition: TopicPartition, code: ErrorCode) -> ErrorCode:
        """A partition that is not here but exists may come back: its disk has failed, say."""
        topic = self._image().topics.get(partition.topic)
        exists = topic is not None and partition.partition < topic.partition_count
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and exists:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code


def transaction_coordinator(
    config: Callable[[], BrokerConfig],
    image: Callable[[], Image],
    replicas: ReplicaManager,
    flusher: Flusher,
    clock: Clock,
    producer_ids: ProducerIds,
) -> tuple[TransactionCoordinator, MarkerSender]:
    """Coordinates the transactional ids whose partitions of `__transaction_state` this broker leads.

    The sender is to be stopped after the coordinator.
    """
    surroundings = transactions.Surroundings(config, image, producer_ids.take)
    sender = MarkerSender(LocalMarkers(config, image, replicas, flusher), clock, producer_ids.ready)
    coordinator = Coordinator(
        TRANSACTION_TOPIC,
        lambda index: transactions.TransactionShard(surroundings),
        TRANSACTION_RECORDS,
        replicas,
        flusher,
        clock,
        do=sender.do,
    )
    sender.serve(coordinator)
    return coordinator, sender


class Coordinators:
    """Those of one broker, and what ties them to its partitions."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], Image],
        replicas: ReplicaManager,
        flusher: Flusher,
        clock: Clock,
        dice: Random,
        producer_ids: ProducerIds,
    ) -> None:
        self.groups = group_coordinator(config, image, replicas, flusher, clock, dice)
        self.transactions, self._marker_sender = transaction_coordinator(
            config, image, replicas, flusher, clock, producer_ids
        )
        self.verifier = CoordinatorVerifier(self.transactions, config)
        replicas.on_end_marker = lambda partition, marker: self.groups.end_transaction(
            partition.topic, partition.partition, marker
        )

    def follow(self, metadata: MetadataWriter) -> None:
        """Load what this broker leads, and follow the cluster from then on."""
        for coordinator in (self.groups, self.transactions):
            coordinator.load(metadata.image)
            metadata.listen(coordinator.apply)

    async def stop(self) -> None:
        """Nothing is lost by that."""
        await self.groups.stop()
        await self.transactions.stop()
        await self._marker_sender.stop()
