"""ImportSegments (32005), v0: make segment files that a job has written the log of an empty partition.

An API of Barnabas. The files and their manifest are in the directory `import` of the partition's log directory; see
`replication/segment_importer.py`. The response follows when the import is complete.

Errors, per partition: CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_REQUEST
if there are no files or they do not match the partition, CORRUPT_MESSAGE if they are damaged, KAFKA_STORAGE_ERROR.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.ids import TopicPartition
from barnabas.wire.acls import AclOperation
from barnabas.wire.barnabas_messages.import_segments import (
    ImportedPartition,
    ImportSegmentsRequest,
    ImportSegmentsResponse,
)
from barnabas.wire.errors import KafkaError


def error_response(request: ImportSegmentsRequest, error: KafkaError) -> ImportSegmentsResponse:
    return ImportSegmentsResponse(results=[_error_result(tp, error) for tp in _partitions(request)])


def audit(_request: ImportSegmentsRequest, response: ImportSegmentsResponse) -> Results:
    return (
        (f"topic/{partition.topic}", partition.error_code, partition.error_message)
        for partition in response.results
    )


@serves(ImportSegmentsRequest, ImportSegmentsResponse, 0, 0, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: ImportSegmentsRequest) -> ImportSegmentsResponse:
    await require_cluster(context, AclOperation.ALTER)
    partitions = await context.compute(_partitions, request)
    results = [await _import(context, tp) async for tp in context.each(partitions)]
    return ImportSegmentsResponse(results=results)


def _partitions(request: ImportSegmentsRequest) -> list[TopicPartition]:
    """Return each requested partition once."""
    requested = (
        TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
    )
    return list(dict.fromkeys(requested))


async def _import(context: RequestContext, tp: TopicPartition) -> ImportedPartition:
    broker = context.broker
    try:
        manifest = await broker.segment_importer.import_log(broker.replicas.partition(*tp))
    except KafkaError as error:
        return _error_result(tp, error)
    key = f"partition {tp.partition} imported offsets"
    offsets = [manifest.start_offset, manifest.end_offset]
    context.record_change(f"topic/{tp.topic}", key, None, offsets)
    return ImportedPartition(
        topic=tp.topic,
        partition_index=tp.partition,
        start_offset=manifest.start_offset,
        end_offset=manifest.end_offset,
    )


def _error_result(tp: TopicPartition, error: KafkaError) -> ImportedPartition:
    return ImportedPartition(
        topic=tp.topic,
        partition_index=tp.partition,
        error_code=error.code,
        error_message=error.message or None,
    )
