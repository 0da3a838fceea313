"""ElectLeaders (43), v0-v2: elect preferred leaders, or leaders of partitions that have none.

v0: preferred leaders (KIP-183).  v1: unclean elections, a top-level error (KIP-460).
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE; for the whole request CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST (an unknown election
type), REQUEST_TIMED_OUT.
"""

from collections.abc import Sequence

from barnabas.api.audit import CLUSTER, Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.elections import changed_partitions, decide_elect, without_unneeded
from barnabas.metadata.partition_change_builder import Election, PartitionOutcome, TopicOutcome
from barnabas.metadata.partition_parts import divided, joined
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

_ELECTIONS = (Election.PREFERRED, Election.UNCLEAN)


def error_response(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    outcomes = [
        TopicOutcome(topic.topic, [PartitionOutcome(index, error) for index in topic.partitions])
        for topic in request.topic_partitions or []
    ]
    return ElectLeadersResponse(
        error_code=error.code, replica_election_results=[_result(outcome) for outcome in outcomes]
    )


def audit(_request: ElectLeadersRequest, response: ElectLeadersResponse) -> Results:
    yield CLUSTER, response.error_code, None
    for topic in response.replica_election_results:
        for partition in topic.partition_result:
            yield f"topic/{topic.topic}", partition.error_code, partition.error_message


@serves(
    ElectLeadersRequest,
    ElectLeadersResponse,
    0,
    2,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    await require_cluster(context, AclOperation.ALTER)
    if request.topic_partitions == []:
        return ElectLeadersResponse()
    if request.election_type not in _ELECTIONS:
        message = (
            f"Election type {request.election_type} is unknown: it must be 0 (preferred) or 1 (unclean)."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    election = Election(request.election_type)
    if request.topic_partitions is None:
        requested = await context.compute(changed_partitions, context.broker.image)
    else:
        requested = await context.compute(_requested, request.topic_partitions)
    rules = context.broker.election_rules
    parts = await context.compute(divided, requested, context.broker.metadata.partitions_max)
    outcomes = await context.write_each(
        parts,
        lambda image, some: decide_elect(
            image, election, [(part.name, part.partitions) for part in some], rules
        ),
        lambda part, error: part.failed(part.partitions, error),
        request.timeout_ms,
    )
    elected = joined(parts, outcomes)
    if request.topic_partitions is None:
        elected = [without_unneeded(outcome) for outcome in elected]
    return ElectLeadersResponse(
        replica_election_results=await context.compute(lambda: [_result(outcome) for outcome in elected])
    )


def _requested(topics: Sequence[TopicPartitions]) -> list[tuple[str, list[int]]]:
    return [(topic.topic, topic.partitions) for topic in topics]


def _result(outcome: TopicOutcome) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=outcome.name,
        partition_result=[
            PartitionResult(
                partition_id=partition.index,
                error_code=partition.error.code if partition.error else ErrorCode.NONE,
                error_message=(partition.error.message or None) if partition.error else None,
            )
            for partition in outcome.partitions
        ],
    )
