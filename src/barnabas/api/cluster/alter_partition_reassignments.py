"""AlterPartitionReassignments (45), v0-v1: move partitions to other brokers, or cancel moves with null (KIP-455).

v1: whether the replication factor may change (KIP-860).
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
NO_REASSIGNMENT_IN_PROGRESS; for the whole request CLUSTER_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT.
"""

from barnabas.api.audit import CLUSTER, Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.partition_change_builder import PartitionOutcome, TopicOutcome
from barnabas.metadata.partition_parts import divided, joined
from barnabas.metadata.reassignments import Target, decide_reassign
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def error_response(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    outcomes = [
        TopicOutcome(
            topic.name, [PartitionOutcome(partition.partition_index, error) for partition in topic.partitions]
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message or None,
        responses=[_result(outcome) for outcome in outcomes],
    )


def audit(
    _request: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Results:
    yield CLUSTER, response.error_code, response.error_message
    for topic in response.responses:
        for partition in topic.partitions:
            yield f"topic/{topic.name}", partition.error_code, partition.error_message


@serves(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    0,
    1,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    await require_cluster(context, AclOperation.ALTER)
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    requested = await context.compute(_requested, request)
    rules, allows_factor_change = context.broker.election_rules, request.allow_replication_factor_change
    parts = await context.compute(divided, requested, context.broker.metadata.partitions_max)
    outcomes = await context.write_each(
        parts,
        lambda image, some: decide_reassign(
            image,
            [(part.name, part.partitions) for part in some],
            rules,
            allows_factor_change=allows_factor_change,
        ),
        lambda part, error: part.failed((target.index for target in part.partitions), error),
        request.timeout_ms,
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=await context.compute(lambda: [_result(outcome) for outcome in joined(parts, outcomes)]),
    )


def _requested(request: AlterPartitionReassignmentsRequest) -> list[tuple[str, list[Target]]]:
    return [
        (
            topic.name,
            [Target(partition.partition_index, partition.replicas) for partition in topic.partitions],
        )
        for topic in request.topics
    ]


def _result(outcome: TopicOutcome) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(
        name=outcome.name,
        partitions=[
            ReassignablePartitionResponse(
                partition_index=partition.index,
                error_code=partition.error.code if partition.error else ErrorCode.NONE,
                error_message=(partition.error.message or None) if partition.error else None,
            )
            for partition in outcome.partitions
        ],
    )
