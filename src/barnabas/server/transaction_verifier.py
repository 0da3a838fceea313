"""Asks the coordinator of a transaction about its partitions (KIP-890), on this broker or on another."""

from collections.abc import Callable, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import TRANSACTION_TOPIC
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.coordinator.partition_of import coordinator_of
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.transaction_verification import TransactionVerifier
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


class ClusterTransactionVerifier:
    """The `TransactionVerifier` of a broker."""

    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        local: TransactionVerifier,
        client: BrokerClient,
    ) -> None:
        """:param local: Asks the coordinators of this broker."""
        self._broker_id = broker_id
        self._image = image
        self._local = local
        self._client = client

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return the error code of each partition; see `TransactionVerifier`."""
        coordinator = coordinator_of(self._image(), TRANSACTION_TOPIC, transactional_id)
        if coordinator in (self._broker_id, None):  # without the topic, this broker returns the error
            return await self._local.verify(
                transactional_id, producer_id, producer_epoch, partitions, adds=adds
            )
        if coordinator == NO_LEADER:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topics: dict[str, list[int]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not adds,
            topics=[AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
        )
        try:
            response: AddPartitionsToTxnResponse = await self._client.send(
                coordinator, AddPartitionsToTxnRequest(transactions=[transaction])
            )
        except BrokerConnectionError:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        if response.error_code:
            return dict.fromkeys(partitions, ErrorCode.of(response.error_code))
        return {
            TopicPartition(topic.name, result.partition_index): ErrorCode.of(result.partition_error_code)
            for results in response.results_by_transaction
            for topic in results.topic_results
            for result in topic.results_by_partition
        }
