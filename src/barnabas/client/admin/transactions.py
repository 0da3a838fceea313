"""List, describe and abort transactions, including hanging ones (KIP-664)."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.errors import check
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class TransactionListing(NamedTuple):
    """A transactional id in a list."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """A transactional id; times in milliseconds, -1 for the start if there is no transaction."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: Sequence[TopicPartition]


class ProducerDescription(NamedTuple):
    """The state of a producer at a partition's leader."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int  #: of the last transaction marker, -1 for none
    transaction_start_offset: int | None  #: None without a transaction


class Transactions:
    """Administers the transactions of a cluster; stateless."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def list(
        self,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        *,
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> "Sequence[TransactionListing]":
        """List all transactional ids by name, or those that match every given filter.

        :raises KafkaError: If a broker refuses the request, or does not have a filter.
        """
        request = ListTransactionsRequest([*states], [*producer_ids], longer_than_ms, pattern)
        await self.cluster.refresh([])
        listings: set[TransactionListing] = set()
        for node in sorted(self.cluster.metadata.nodes):
            listings.update(await self._list_on(node, request))
        return sorted(listings)

    async def _list_on(self, node: int, request: ListTransactionsRequest) -> Iterable[TransactionListing]:
        async def attempt() -> Iterable[TransactionListing]:
            response: ListTransactionsResponse = await self.cluster.send(request, node)
            check(response.error_code, f"broker {node} refused ListTransactions")
            return [
                TransactionListing(state.transactional_id, state.producer_id, state.transaction_state)
                for state in response.transaction_states
            ]

        return await self.cluster.retrying(attempt)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Describe a transactional id.

        :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        """

        async def ask(node: int) -> TransactionDescription:
            request = DescribeTransactionsRequest([transactional_id])
            response: DescribeTransactionsResponse = await self.cluster.send(request, node)
            state = response.transaction_states[0]
            check(state.error_code, f"transactional id '{transactional_id}'")
            return TransactionDescription(
                transactional_id,
                node,
                state.transaction_state,
                state.producer_id,
                state.producer_epoch,
                state.transaction_timeout_ms,
                state.transaction_start_time_ms,
                sorted(
                    TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions
                ),
            )

        return await ask_coordinator(self.cluster, KeyType.TRANSACTION, transactional_id, ask)

    async def terminate(self, transactional_id: str) -> TransactionDescription:
        """Fence the producer of a transactional id, which aborts its transaction; return the previous state.

        :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        """
        before = await self.describe(transactional_id)
        request = InitProducerIdRequest(transactional_id, before.timeout_ms)

        async def ask(node: int) -> None:
            response: InitProducerIdResponse = await self.cluster.send(request, node)
            check(response.error_code, f"transactional id '{transactional_id}' is not terminated")

        await ask_coordinator(self.cluster, KeyType.TRANSACTION, transactional_id, ask)
        return before

    async def producers(self, tp: TopicPartition) -> Sequence[ProducerDescription]:
        """Return the producer state of a partition.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
        """

        async def attempt() -> Sequence[ProducerDescription]:
            request = DescribeProducersRequest([TopicRequest(tp.topic, [tp.partition])])
            leader = await self.cluster.leader(tp)
            response: DescribeProducersResponse = await self.cluster.send(request, leader)
            partition = response.topics[0].partitions[0]
            check(partition.error_code, partition.error_message or f"producers of {tp}")
            return [
                ProducerDescription(
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    None if producer.current_txn_start_offset < 0 else producer.current_txn_start_offset,
                )
                for producer in partition.active_producers
            ]

        await self.cluster.topic(tp.topic)
        self.cluster.metadata.partition(tp)  # an unknown partition is not waited for
        return await self.cluster.retrying(attempt)

    async def abort(self, tp: TopicPartition, start_offset: int) -> ProducerDescription:
        """Abort the transaction that began at an offset, in that partition alone; return its producer.

        Use it for transactions that are unknown to their coordinator; others are ended by their producers.

        :raises KafkaError: INVALID_TXN_STATE if no transaction began there; CLUSTER_AUTHORIZATION_FAILED.
        """
        for producer in await self.producers(tp):
            if producer.transaction_start_offset == start_offset:
                await self._write_abort(tp, producer)
                return producer
        message = f"no open transaction of {tp} begins at offset {start_offset}"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, message)

    async def _write_abort(self, tp: TopicPartition, producer: ProducerDescription) -> None:
        marker = WritableTxnMarker(
            producer.producer_id,
            producer.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(tp.topic, [tp.partition])],
            coordinator_epoch=max(0, producer.coordinator_epoch),
        )

        async def attempt() -> None:
            leader = await self.cluster.leader(tp)
            response: WriteTxnMarkersResponse = await self.cluster.send(
                WriteTxnMarkersRequest([marker]), leader
            )
            [topic] = response.markers[0].topics
            check(topic.partitions[0].error_code, f"the transaction in {tp} is not aborted")

        await self.cluster.retrying(attempt)
