"""Creates the group and transaction coordinators of a broker."""

from collections.abc import Callable
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.offsets.cluster_offsets import ClusterOffsets
from barnabas.groups.shard import GroupShard
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.flusher import Flusher
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.server.transaction_markers import TransactionMarkers
from barnabas.server.transaction_verifier import ClusterTransactionVerifier
from barnabas.transactions.markers import MarkerSender
from barnabas.transactions.shard import TransactionCoordinatorContext, TransactionShard
from barnabas.transactions.verification import CoordinatorVerifier
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, TRANSACTION_RECORDS
from barnabas.wire.records.compression import Compression


class Coordinators:
    """The group and transaction coordinators of a broker, connected to its partitions."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
        flusher: Flusher,
        clock: Clock,
        rng: Random,
        producer_ids: ProducerIds,
        *,
        broker_client: BrokerClient,
        marker_client: BrokerClient,
        offsets_client: BrokerClient,
    ) -> None:
        """:param config: Returns the current configuration.
        :param image: Returns the current metadata image.
        """
        broker_id = config().node_id
        write_timeout_ms = config().integer("offsets.commit.timeout.ms")
        group_context = GroupCoordinatorContext(config, image, rng)
        self.group_counts = group_context.counts
        self.rebalances = group_context.rebalances
        self.groups = CoordinatorRuntime(
            GROUP_TOPIC,
            lambda index: GroupShard(group_context),
            GROUP_RECORDS,
            replicas,
            flusher,
            clock,
            compression=Compression(config().integer("offsets.topic.compression.codec")),
            write_timeout_ms=write_timeout_ms,
        )
        self.offsets = ClusterOffsets(broker_id, image, self.groups, offsets_client)
        transaction_context = TransactionCoordinatorContext(config, image, producer_ids.take)
        self.transaction_counts = transaction_context.counts
        self._markers = TransactionMarkers(broker_id, config, image, replicas, flusher, marker_client)
        self.marker_sender = MarkerSender(self._markers, clock, producer_ids.ready)
        self.transactions = CoordinatorRuntime(
            TRANSACTION_TOPIC,
            lambda index: TransactionShard(transaction_context),
            TRANSACTION_RECORDS,
            replicas,
            flusher,
            clock,
            do=self.marker_sender.do,
            write_timeout_ms=write_timeout_ms,
        )
        self.marker_sender.serve(self.transactions)
        own_coordinators = CoordinatorVerifier(self.transactions, config)
        self.verifier = ClusterTransactionVerifier(broker_id, image, own_coordinators, broker_client)
        replicas.on_transaction_marker = lambda partition, marker: self.groups.end_transaction(
            partition.topic, partition.partition, marker
        )

    def start(self, metadata: MetadataWriter) -> None:
        """Load the shards that this broker leads, and follow the image from then on."""
        for coordinator in (self.groups, self.transactions):
            coordinator.load(metadata.image)
            metadata.listen(coordinator.apply)

    async def stop(self) -> None:
        """Abandon restorations of offsets, close all shards, then the sender of transaction markers."""
        await self.offsets.stop()
        await self.groups.stop()
        await self.transactions.stop()
        await self.marker_sender.stop()
        await self._markers.stop()
