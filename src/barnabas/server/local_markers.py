"""Transaction markers for the partitions of this broker."""

from collections.abc import Callable, Collection, Mapping

from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replication.flusher import Flusher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.transaction_markers import write_transaction_markers
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.control import EndTransactionMarker


class LocalMarkers:
    """Writes markers to partitions of this broker, which is the only one: a `MarkerWriter`."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
        flusher: Flusher,
    ) -> None:
        self._config = config
        self._image = image
        self._replicas = replicas
        self._flusher = flusher

    async def write(
        self, marker: EndTransactionMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return the error code of each partition."""
        outcomes = await write_transaction_markers(
            self._replicas,
            self._flusher,
            marker,
            partitions,
            transaction_version=transaction_version,
            timeout_ms=self._config().integer("request.timeout.ms"),
        )
        return {partition: self._retriable(partition, code) for partition, code in outcomes.items()}

    def _retriable(self, partition: TopicPartition, code: ErrorCode) -> ErrorCode:
        """Return a retriable error for a partition that exists but is not here, for example because its disk failed."""
        topic = self._image().topics.get(partition.topic)
        exists = topic is not None and partition.partition < topic.partition_count
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and exists:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code
