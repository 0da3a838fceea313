"""ListPartitionReassignments (46), v0: reassignments in progress (KIP-455).

Unknown topics and partitions, and those without a reassignment, are left out.
Errors: CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.reassignments import reassignments
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def error_response(
    request: ListPartitionReassignmentsRequest, error: KafkaError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message or None)


@serves(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    0,
    0,
    error_response=error_response,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    await require_cluster(context, AclOperation.DESCRIBE)
    requested = None
    if request.topics is not None:
        requested = [(topic.name, topic.partition_indexes) for topic in request.topics]
    in_progress = await context.broker.worker.call(reassignments, context.broker.image, requested)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(
                name=name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=list(state.replicas),
                        adding_replicas=list(state.adding),
                        removing_replicas=list(state.removing),
                    )
                    for index, state in partitions.items()
                ],
            )
            for name, partitions in in_progress.items()
        ],
    )
