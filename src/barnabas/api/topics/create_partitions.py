"""CreatePartitions (37), v0-v3: add partitions to topics.

v3: THROTTLING_QUOTA_EXCEEDED (KIP-599).
Errors, per topic: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT,
THROTTLING_QUOTA_EXCEEDED (before v3 the client is only throttled).
"""

from collections import Counter

from barnabas.api.audit import Results
from barnabas.api.authorization import authorization_errors
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.metadata.partition_creation import Grown, MorePartitions, decide_create_partitions
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def error_response(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(results=[_result(Grown(name, error)) for name in names])


def audit(_request: CreatePartitionsRequest, response: CreatePartitionsResponse) -> Results:
    return ((f"topic/{topic.name}", topic.error_code, topic.error_message) for topic in response.results)


@serves(
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    0,
    3,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    broker = context.broker
    once = await context.compute(_unique_names, request)
    refused = await authorization_errors(context, AclOperation.ALTER, ResourceType.TOPIC, once)
    topics = context.each(request.topics)
    requested = [_to_more_partitions(topic) async for topic in topics if topic.name not in refused]
    with mutations(context, strict_from=3) as quota:
        outcomes = await context.write_each(
            requested,
            lambda image, part: decide_create_partitions(
                image,
                part,
                broker.rng,
                validate_only=request.validate_only,
                check=context.policies.check_create_partitions,
                admit=quota.admit(part),
            ),
            lambda more, error: Grown(more.name, error),
            request.timeout_ms,
            key=lambda more: more.name,
        )
    outcomes += [Grown(name, error) for name, error in refused.items()]
    return CreatePartitionsResponse(results=[_result(outcome) async for outcome in context.each(outcomes)])


def _unique_names(request: CreatePartitionsRequest) -> list[str]:
    occurrences = Counter(topic.name for topic in request.topics)
    return [name for name, count in occurrences.items() if count == 1]


def _to_more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    requested = topic.assignments
    assignments = None if requested is None else [assignment.broker_ids for assignment in requested]
    return MorePartitions(topic.name, topic.count, assignments)


def _result(outcome: Grown) -> CreatePartitionsTopicResult:
    if outcome.error is None:
        return CreatePartitionsTopicResult(name=outcome.name, error_code=ErrorCode.NONE)
    return CreatePartitionsTopicResult(
        name=outcome.name, error_code=outcome.error.code, error_message=outcome.error.message or None
    )
