"""CreateTopics (19), v2-v7: create topics, each on its own.

v2: throttle time.  v4: -1 is the broker's default (KIP-464).  v5: the response contains partitions and configs
(KIP-525).  v6: THROTTLING_QUOTA_EXCEEDED (KIP-599).  v7: topic ids (KIP-516).
Errors, per topic: TOPIC_AUTHORIZATION_FAILED, TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION,
REQUEST_TIMED_OUT, THROTTLING_QUOTA_EXCEEDED (before v6 the client is only throttled).
"""

from collections import Counter
from collections.abc import Mapping

from barnabas.api.audit import Results
from barnabas.api.authorization import allowed, ask_authorizer, topic_authorization_errors
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.api.topics.topic_creator import create_topics
from barnabas.base.ids import uuid_to_text
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.config.definition import OWN_PREFIX
from barnabas.config.describe import describe_topic
from barnabas.metadata.topic_creation import TopicCreationResult, TopicToCreate
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def error_response(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_error_result(topic.name, error) for topic in request.topics])


def audit(_request: CreateTopicsRequest, response: CreateTopicsResponse) -> Results:
    return ((f"topic/{topic.name}", topic.error_code, topic.error_message) for topic in response.topics)


@serves(
    CreateTopicsRequest,
    CreateTopicsResponse,
    2,
    7,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    broker = context.broker
    started_ns = broker.tracer.now_ns()
    refused = await _unauthorized(context, request)
    topics = context.each(request.topics)
    requested = [_new_topic(topic) async for topic in topics if topic.name not in refused]
    with mutations(context, strict_from=6) as quota:
        results = await create_topics(
            context,
            requested,
            validate_only=request.validate_only,
            quota=quota,
            timeout_ms=request.timeout_ms,
        )
    results += [TopicCreationResult(name, error=error) for name, error in refused.items()]
    created = (result.name for result in results if result.error is None)
    await ask_authorizer(context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, created)
    for result in results:
        if broker.tracer.enabled and result.topic is not None:
            topic = result.topic
            broker.tracer.record(
                "barnabas.topic.create",
                started_ns,
                context.span,
                topic=topic.name,
                topic_id=uuid_to_text(topic.topic_id),
                partition_count=topic.partition_count,
            )
    return CreateTopicsResponse(
        topics=[await _result(context, result) async for result in context.each(results)]
    )


async def _unauthorized(context: RequestContext, request: CreateTopicsRequest) -> dict[str, KafkaError]:
    """Return the errors of topics that the principal may not create; invalid topics have their own errors."""
    occurrences = await context.compute(lambda: Counter(topic.name for topic in request.topics))
    once = [name for name, count in occurrences.items() if count == 1 and name != METADATA_TOPIC]
    return await topic_authorization_errors(context, AclOperation.CREATE, once)


def _new_topic(topic: CreatableTopic) -> TopicToCreate:
    # Of a duplicate key the last value counts, except for null, which is always refused.
    configs = sorted(topic.configs, key=lambda config: config.value is None)
    return TopicToCreate(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments={assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
        configs={config.name: config.value for config in configs},
    )


def _error_result(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or None, configs=[]
    )


async def _result(context: RequestContext, result: TopicCreationResult) -> CreatableTopicResult:
    if result.error is not None:
        return _error_result(result.name, result.error)
    topic = result.topic
    assert topic is not None, result
    if not await allowed(context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=_configs(context, result.overrides or {}),
    )


def _configs(context: RequestContext, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """Return the configs of a new topic; of those that Kafka does not have, only the ones that were set.

    Programs may look each name up among Kafka's keys.
    """
    if context.api_version < 5:
        return []
    entries = describe_topic(context.broker.dynamic_config.layers, overrides)
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in entries
        if entry.name in overrides or not entry.name.startswith(OWN_PREFIX)
    ]
