"""Writes transaction markers to the leaders of partitions, on this broker and on others."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.flusher import Flusher
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.transaction_markers import AppendedMarkers, append_transaction_markers, parts_of
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.wire.records.control import EndTransactionMarker

_log = get_logger("barnabas.transactions")

#: result of each partition
Outcomes = Mapping[TopicPartition, ErrorCode]


class _Waiting(NamedTuple):
    """A marker that waits for the request that contains it."""

    marker: EndTransactionMarker
    partitions: Sequence[TopicPartition]
    transaction_version: int
    outcomes: asyncio.Future[Outcomes]


class TransactionMarkers:
    """A `MarkerWriter`. Each other broker has a queue; one request in flight contains all markers that have waited."""

    def __init__(
        self,
        broker_id: int,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
        flusher: Flusher,
        client: BrokerClient,
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._image = image
        self._replicas = replicas
        self._flusher = flusher
        self._client = client
        self._queues: defaultdict[int, list[_Waiting]] = defaultdict(list)  #: by broker
        self._sending: dict[int, asyncio.Task[None]] = {}
        self.requests_count = 0

    async def write(
        self, marker: EndTransactionMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Outcomes:
        """Return the error code of each partition; UNKNOWN_TOPIC_OR_PARTITION only if it is deleted for good."""
        image = self._image()
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._leader(image, partition), []).append(partition)
        outcomes: dict[TopicPartition, ErrorCode] = dict.fromkeys(
            by_leader.pop(NO_LEADER, ()), ErrorCode.LEADER_NOT_AVAILABLE
        )
        own = by_leader.pop(self._broker_id, None)
        remote = [
            self._enqueue(leader, marker, those, transaction_version) for leader, those in by_leader.items()
        ]
        if own is not None:
            outcomes |= await self._write_here(marker, own, transaction_version)
        if remote:
            for results in await asyncio.gather(*remote):
                outcomes |= results
        return {partition: self._retriable(partition, code) for partition, code in outcomes.items()}

    def _leader(self, image: MetadataImage, partition: TopicPartition) -> int:
        """Return the leader; this broker for a partition that does not exist."""
        topic = image.topics.get(partition.topic)
        if topic is None or partition.partition >= topic.partition_count:
            return self._broker_id
        return image.partition(topic, partition.partition).leader

    async def _write_here(
        self, marker: EndTransactionMarker, partitions: Sequence[TopicPartition], transaction_version: int
    ) -> Outcomes:
        appended: list[AppendedMarkers] = []
        for part in parts_of(partitions):
            if appended:
                await asyncio.sleep(0)
            markers = append_transaction_markers(
                self._replicas,
                self._flusher,
                marker,
                part,
                transaction_version=transaction_version,
                timeout_ms=self._config().integer("request.timeout.ms"),
            )
            appended.append(markers)
        outcomes: dict[TopicPartition, ErrorCode] = {}
        for markers in appended:
            outcomes |= await markers.results()
        return outcomes

    def _enqueue(
        self,
        leader: int,
        marker: EndTransactionMarker,
        partitions: Sequence[TopicPartition],
        transaction_version: int,
    ) -> "asyncio.Future[Outcomes]":
        loop = asyncio.get_running_loop()
        waiting = _Waiting(marker, partitions, transaction_version, loop.create_future())
        self._queues[leader].append(waiting)
        if leader not in self._sending:
            self._sending[leader] = loop.create_task(self._send_queue(leader))
        return waiting.outcomes

    async def _send_queue(self, leader: int) -> None:
        try:
            while queue := self._queues.pop(leader, None):
                results = await self._send(leader, queue)
                for waiting, outcomes in zip(queue, results, strict=True):
                    if not waiting.outcomes.done():
                        waiting.outcomes.set_result(outcomes)
        finally:
            del self._sending[leader]

    async def _send(self, leader: int, queue: Sequence[_Waiting]) -> list[Outcomes]:
        self.requests_count += 1
        request = WriteTxnMarkersRequest([_encoded(waiting) for waiting in queue])
        try:
            response: WriteTxnMarkersResponse = await self._client.send(leader, request)
        except BrokerConnectionError:
            return [dict.fromkeys(waiting.partitions, ErrorCode.NETWORK_EXCEPTION) for waiting in queue]
        except KafkaError as error:
            return [dict.fromkeys(waiting.partitions, error.code) for waiting in queue]
        except Exception:  # any error: without outcomes, these transactions would never end
            _log.exception("cannot send transaction markers", broker_id=leader)
            return [_outcomes_of(waiting, {}) for waiting in queue]
        by_producer = {
            producer.producer_id: {
                TopicPartition(topic.name, result.partition_index): ErrorCode.of(result.error_code)
                for topic in producer.topics
                for result in topic.partitions
            }
            for producer in response.markers
        }
        return [_outcomes_of(waiting, by_producer.get(waiting.marker.producer_id, {})) for waiting in queue]

    def _retriable(self, partition: TopicPartition, code: ErrorCode) -> ErrorCode:
        """Return a retriable error for a partition that exists, but not where it was looked for."""
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return code
        topic = self._image().topics.get(partition.topic)
        exists = topic is not None and partition.partition < topic.partition_count
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else code

    async def stop(self) -> None:
        """Abandon the requests in flight; the next coordinator sends their markers again."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    def statistics(self) -> dict[str, int]:
        return {
            "requests_count": self.requests_count,
            "waiting_count": sum(len(queue) for queue in self._queues.values()),
        }


def _encoded(waiting: _Waiting) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for partition in waiting.partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return WritableTxnMarker(
        producer_id=waiting.marker.producer_id,
        producer_epoch=waiting.marker.producer_epoch,
        transaction_result=waiting.marker.commit,
        topics=[WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
        coordinator_epoch=waiting.marker.coordinator_epoch,
        transaction_version=waiting.transaction_version,
    )


def _outcomes_of(waiting: _Waiting, results: Outcomes) -> Outcomes:
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR  # a partition that the response lacks is tried again
    return {partition: results.get(partition, unknown) for partition in waiting.partitions}
