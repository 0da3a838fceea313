"""Requests of a producer to the coordinator of its transactional id (KIP-98), one call each.

The calls share no state: one process may begin a transaction and another end it. They use the versions in which
partitions are added one by one, which brokers support under every transaction.version.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.core.cluster import MAIN_LANE, ClusterClient
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.errors import check
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

ResultT = TypeVar("ResultT")

#: The last versions before the broker adds partitions itself, and before every end returns a new epoch.
_ADD_PARTITIONS_VERSION_MAX = 3
_COMMIT_OFFSETS_VERSION_MAX = 4
_END_VERSION_MAX = 4
_NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1


class TransactionalId:
    """A transactional id of the given cluster; keeps no state."""

    def __init__(self, cluster: ClusterClient, name: str) -> None:
        self.cluster = cluster
        self.name = name

    async def initialize(self, timeout_ms: int) -> ProducerIdAndEpoch:
        """Return a new producer id and epoch; all earlier ones are fenced, and an open transaction is aborted first.

        :param timeout_ms: The broker aborts a transaction that is open for longer.
        :raises KafkaError: INVALID_TRANSACTION_TIMEOUT, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        """
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)

        async def ask(node: int) -> ProducerIdAndEpoch:
            response: InitProducerIdResponse = await self.cluster.send(request, node)
            check(response.error_code, self._with_id(f"no producer id (timeout {timeout_ms} ms)"))
            return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

        return await self._ask(ask)

    async def add_partitions(
        self, identity: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction before producing to them; the first call begins it.

        :raises KafkaError: PRODUCER_FENCED, INVALID_TXN_STATE, TOPIC_AUTHORIZATION_FAILED and others.
        """
        topics: dict[str, list[int]] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
        )

        async def ask(node: int) -> None:
            response: AddPartitionsToTxnResponse = await self.cluster.send(
                request, node, version_max=_ADD_PARTITIONS_VERSION_MAX
            )
            for topic in response.results_by_topic_v3_and_below:
                for result in topic.results_by_partition:
                    tp = TopicPartition(topic.name, result.partition_index)
                    check(
                        result.partition_error_code,
                        self._with_id(f"partition {tp} was not added to the transaction"),
                    )

        await self._ask(ask)

    async def commit_offsets(
        self, identity: ProducerIdAndEpoch, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit offsets of a group without members as part of the transaction.

        :raises KafkaError: PRODUCER_FENCED, INVALID_TXN_STATE, GROUP_AUTHORIZATION_FAILED and others.
        """

        async def add(node: int) -> None:
            response: AddOffsetsToTxnResponse = await self.cluster.send(
                AddOffsetsToTxnRequest(self.name, *identity, group),
                node,
                version_max=_ADD_PARTITIONS_VERSION_MAX,
            )
            check(
                response.error_code,
                self._with_id(f"offsets of group '{group}' were not added to the transaction"),
            )

        request = _offset_commit_request(self.name, identity, group, offsets)

        async def commit(node: int) -> None:
            response: TxnOffsetCommitResponse = await self.cluster.send(
                request, node, version_max=_COMMIT_OFFSETS_VERSION_MAX
            )
            for topic in response.topics:
                for partition in topic.partitions:
                    tp = TopicPartition(topic.name, partition.partition_index)
                    check(partition.error_code, self._with_id(f"group '{group}', the offset of {tp}"))

        await self._ask(add)
        await ask_coordinator(self.cluster, KeyType.GROUP, group, commit)

    async def end(self, identity: ProducerIdAndEpoch, *, commit: bool) -> None:
        """End the transaction; ending it the same way again has no effect.

        :raises KafkaError: PRODUCER_FENCED when the id has a newer epoch, as after a timeout;
            INVALID_TXN_STATE if no transaction is open, or it has the other outcome.
        """
        request = EndTxnRequest(self.name, *identity, commit)

        async def ask(node: int) -> None:
            response: EndTxnResponse = await self.cluster.send(request, node, version_max=_END_VERSION_MAX)
            check(response.error_code, self._with_id("not committed" if commit else "not aborted"))

        await self._ask(ask)

    async def _ask(self, ask: Callable[[int], Awaitable[ResultT]]) -> ResultT:
        return await ask_coordinator(self.cluster, KeyType.TRANSACTION, self.name, ask)

    def _with_id(self, what: str) -> str:
        return f"transactional id '{self.name}': {what}"


def _offset_commit_request(
    name: str, identity: ProducerIdAndEpoch, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> TxnOffsetCommitRequest:
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for tp, committed in offsets.items():
        topics.setdefault(tp.topic, []).append(TxnOffsetCommitRequestPartition(tp.partition, *committed))
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(*topic) for topic in topics.items()],
    )


async def idempotent_identity(cluster: ClusterClient, lane: str = MAIN_LANE) -> ProducerIdAndEpoch:
    """Return a producer id without a transactional id, with which each batch is stored once however often it is sent.

    :raises KafkaError: The error of the broker.
    """
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)

    async def attempt() -> ProducerIdAndEpoch:
        response: InitProducerIdResponse = await cluster.send(request, lane=lane)
        check(response.error_code, "no producer id for an idempotent producer")
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    return await cluster.retrying(attempt)
