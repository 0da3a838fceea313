"""WriteTxnMarkers (27), v0-v2: write transaction markers to partitions of this broker, for the coordinators.

v1: flexible.  v2: the version of the transaction (KIP-1228).
Errors, per partition: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION,
NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT,
KAFKA_STORAGE_ERROR.
"""

from barnabas.api.audit import CLUSTER, Results
from barnabas.api.authorization import allowed_cluster, require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.ids import TopicPartition
from barnabas.replication.broker_client import client_id_of
from barnabas.replication.transaction_markers import AppendedMarkers, append_transaction_markers, parts_of
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.wire.records.control import EndTransactionMarker

#: partition -> error code
Outcomes = dict[TopicPartition, ErrorCode]


def error_response(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    outcomes: dict[int, Outcomes] = {}
    for marker in request.markers:
        outcomes.setdefault(marker.producer_id, {}).update(dict.fromkeys(_partitions(marker), error.code))
    return _response(outcomes)


def audit(_request: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse) -> Results:
    for producer in response.markers:
        for topic in producer.topics:
            for partition in topic.partitions:
                yield CLUSTER, partition.error_code, None


@serves(WriteTxnMarkersRequest, WriteTxnMarkersResponse, 0, 2, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Append the markers in order, then wait for all; if a producer has several, the last result counts."""
    if not await allowed_cluster(context, AclOperation.ALTER):
        await require_cluster(context, AclOperation.CLUSTER_ACTION)
    context.is_exempt = True
    async for marker in context.each(request.markers):
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            message = (
                f"Producer id {marker.producer_id} and epoch {marker.producer_epoch} are not valid: "
                "both must be 0 or more."
            )
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    appended: list[tuple[WritableTxnMarker, AppendedMarkers]] = []
    async for marker in context.each(request.markers):
        appended += [(marker, part) for part in await _append(context, marker)]
    outcomes: dict[int, Outcomes] = {}
    async for marker, part in context.each(appended):
        codes = await part.results()
        outcomes.setdefault(marker.producer_id, {}).update(codes)
        await _record_ends(context, marker, codes)
    return await context.compute(_response, outcomes)


async def _append(context: RequestContext, marker: WritableTxnMarker) -> list[AppendedMarkers]:
    broker = context.broker
    end = EndTransactionMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        broker.clock.wall_ms(),
    )
    partitions = await context.compute(_partitions, marker)
    return [
        append_transaction_markers(
            broker.replicas,
            broker.flusher,
            end,
            part,
            transaction_version=marker.transaction_version,
            timeout_ms=broker.config.integer("request.timeout.ms"),
        )
        async for part in context.each(parts_of(partitions))
    ]


async def _record_ends(context: RequestContext, marker: WritableTxnMarker, outcomes: Outcomes) -> None:
    """Record in the audit what an administrator has ended (KIP-664)."""
    if _is_from_coordinator(context):
        return
    end_state = "committed" if marker.transaction_result else "aborted"
    async for (topic, index), code in context.each(outcomes.items()):
        if code is ErrorCode.NONE:
            key = f"partition {index} transaction of producer {marker.producer_id}"
            context.record_change(f"topic/{topic}", key, "ongoing", end_state)


def _is_from_coordinator(context: RequestContext) -> bool:
    """Return whether another broker ends a transaction of its own, of which there may be thousands in a second."""
    broker = context.broker
    if context.connection.listener != broker.config.inter_broker_listener_name:
        return False
    return context.client_id in {client_id_of(each.broker_id) for each in broker.image.brokers.values()}


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    names = (
        TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
    )
    return list(dict.fromkeys(names))  # a duplicate gets one marker


def _response(outcomes: dict[int, Outcomes]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(by_partition))
            for producer_id, by_partition in outcomes.items()
        ]
    )


def _topics(outcomes: Outcomes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for name, code in outcomes.items():
        result = WritableTxnMarkerPartitionResult(partition_index=name.partition, error_code=code)
        topics.setdefault(name.topic, []).append(result)
    return [WritableTxnMarkerTopicResult(name=name, partitions=results) for name, results in topics.items()]
