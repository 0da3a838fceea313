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
    """Administers the transactions of a cluster; has no state of its own."""

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
        found: set[TransactionListing] = set()
        for node in sorted(self.cluster.metadata.nodes):
            found.update(await self._list_on(node, request))
        return sorted(found)

    async def _list_on(self, node: int, request: ListTransactionsRequest) -> Iterable[TransactionListing]:
        async def attempt() -> Iterable[TransactionListing]:
            response: ListTransactionsResponse = await self.cluster.send(request, node)
            check(response.error_code, f"broker {node} refused ListTransactions")
            return [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
                for each in response.transaction_states
            ]

        return await self.cluster.retrying(attempt)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Describe a transactional id.

        :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        """

        async def ask(node: int) -> TransactionDescription:
            request = DescribeTransactionsRequest([transactional_id])
            response: DescribeTransactionsResponse = await self.cluster.send(request, node)
            found = response.transaction_states[0]
            check(found.error_code, f"transactional id '{transactional_id}'")
            return TransactionDescription(
                transactional_id,
                node,
                found.transaction_state,
                found.producer_id,
                found.producer_epoch,
                found.transaction_timeout_ms,
                found.transaction_start_time_ms,
                sorted(
                    TopicPartition(each.topic, index) for each in found.topics for index in each.partitions
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
            found = response.topics[0].partitions[0]
            check(found.error_code, found.error_message or f"producers of {tp}")
            return [
                ProducerDescription(
                    each.producer_id,
                    each.producer_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    None if each.current_txn_start_offset < 0 else each.current_txn_start_offset,
                )
                for each in found.active_producers
            ]

        await self.cluster.topic(tp.topic)
        self.cluster.metadata.partition(tp)  # an unknown partition is not waited for
        return await self.cluster.retrying(attempt)

    async def abort(self, tp: TopicPartition, start_offset: int) -> ProducerDescription:
        """Abort the transaction that began at an offset, in that partition alone; return its producer.

        Use it for transactions that their coordinator does not know any more; others are ended by their producers.

        :raises KafkaError: INVALID_TXN_STATE if no transaction began there; CLUSTER_AUTHORIZATION_FAILED.
        """
        for producer in await self.producers(tp):
            if producer.transaction_start_offset == start_offset:
                await self._write_abort(tp, producer)
                return producer
        message = f"no transaction that is open began at offset {start_offset} of {tp}"
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
