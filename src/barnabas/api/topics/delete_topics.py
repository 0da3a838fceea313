"""DeleteTopics (20), v1-v6: delete topics; their logs are deleted soon after the response.

v1: throttle time.  v3: TOPIC_DELETION_DISABLED.  v5: error messages (KIP-599).  v6: topics by id (KIP-516).
Errors, per topic: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST,
TOPIC_DELETION_DISABLED, POLICY_VIOLATION, REQUEST_TIMED_OUT, THROTTLING_QUOTA_EXCEEDED (before v5 the client is only
throttled).
"""

from collections import Counter
from collections.abc import Iterable

from barnabas.api.audit import Results
from barnabas.api.authorization import (
    allowed,
    allowed_cluster,
    ask_authorizer,
    log_denial,
    topic_authorization_errors,
)
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.base.ids import ZERO_UUID
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_deletion import Deleted, TopicToDelete, decide_delete, identity
from barnabas.metadata.trash import TrashEntry
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

#: The error for a topic whose name must not be revealed.
HIDDEN = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Not authorized: DELETE on the topic is needed.")


def _requested_topics(request: DeleteTopicsRequest) -> list[TopicToDelete]:
    by_name = [TopicToDelete(name) for name in request.topic_names]
    return by_name + [TopicToDelete(topic.name, topic.topic_id) for topic in request.topics]


def _is_one_topic(topic: TopicToDelete) -> bool:
    """Return whether a topic is requested either by name or by id."""
    return (topic.name is None) != (topic.topic_id == ZERO_UUID)


def error_response(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    outcomes = [Deleted(topic.name, topic.topic_id, error) for topic in _requested_topics(request)]
    return DeleteTopicsResponse(responses=[_result(outcome) for outcome in outcomes])


def audit(_request: DeleteTopicsRequest, response: DeleteTopicsResponse) -> Results:
    for topic in response.responses:
        name = topic.topic_id.hex() if topic.name is None else topic.name
        yield f"topic/{name}", topic.error_code, topic.error_message


@serves(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    1,
    6,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    broker = context.broker
    if not broker.config.boolean("delete.topic.enable"):
        code = ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        raise KafkaError(code, "Topics cannot be deleted here: delete.topic.enable is false.")
    started_ns = broker.tracer.now_ns()
    topics = await context.compute(_requested_topics, request)
    check = context.policies.check_delete_topic
    occurrences = await context.compute(Counter, topics)
    once = await context.compute(
        lambda: [topic for topic in topics if occurrences[topic] == 1 and _is_one_topic(topic)]
    )
    await _ask(context, once)
    refused = {
        topic: error
        async for topic in context.each(once)
        if (error := await _unauthorized(context, topic)) is not None
    }
    requested = await context.compute(lambda: [topic for topic in topics if topic not in refused])
    trash = None
    if broker.config.integer("barnabas.trash.retention.ms"):
        names = await context.compute(_names, broker.image, requested)
        offsets = await broker.cluster_offsets.of_topics(
            names & broker.image.topics.keys(), context.checkpoint
        )
        trash = TrashEntry(broker.clock.wall_ms(), context.connection.principal, offsets)
    with mutations(context, strict_from=5) as quota:
        image = broker.image
        outcomes = await context.write_each(
            requested,
            lambda image, part: decide_delete(image, part, check, quota.admit(part), trash),
            lambda topic, error: Deleted(topic.name, topic.topic_id, error),
            request.timeout_ms,
            key=lambda topic: identity(image, topic),
        )
    outcomes += refused.values()
    for outcome in outcomes:
        if broker.tracer.enabled and outcome.error is None:
            broker.tracer.record("barnabas.topic.delete", started_ns, context.span, topic=outcome.name)
    responses = [_result(outcome) async for outcome in context.each(outcomes)]
    context.free(topics, occurrences, once, refused, requested, outcomes)
    return DeleteTopicsResponse(responses=responses)


def _names(image: MetadataImage, requested: Iterable[TopicToDelete]) -> set[str]:
    by_id = (image.topic_by_id(topic.topic_id) for topic in requested if topic.name is None)
    return {topic.name for topic in requested if topic.name is not None} | {
        topic.name for topic in by_id if topic
    }


async def _ask(context: RequestContext, requested: Iterable[TopicToDelete]) -> None:
    """Ask the authorizer at once for what `_unauthorized` needs."""
    if context.broker.asks_authorizer:
        names = _names(context.broker.image, requested)
        for operation in (AclOperation.DESCRIBE, AclOperation.DELETE):
            await ask_authorizer(context, operation, ResourceType.TOPIC, names)


async def _unauthorized(context: RequestContext, requested: TopicToDelete) -> Deleted | None:
    """Return why the principal may not delete the topic; None if it may, or if there is nothing to protect.

    Without DESCRIBE, the principal does not learn whether a topic exists, nor the name for an id, nor the id for a
    name.
    """
    image = context.broker.image
    topic = (
        image.topics.get(requested.name)
        if requested.name is not None
        else image.topic_by_id(requested.topic_id)
    )
    name = topic.name if topic is not None else requested.name
    if name is None:
        return None
    describable = await allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    if (
        requested.name is not None
        and not describable
        and not await allowed_cluster(context, AclOperation.DELETE)
    ):
        return Deleted(name, ZERO_UUID, log_denial(context, AclOperation.DELETE, ResourceType.TOPIC, name))
    error = (await topic_authorization_errors(context, AclOperation.DELETE, [name])).get(name)
    if topic is None or error is None:
        return None
    if requested.name is not None:
        return Deleted(name, ZERO_UUID, error)
    return Deleted(name if describable else None, topic.topic_id, error if describable else HIDDEN)


def _result(outcome: Deleted) -> DeletableTopicResult:
    if outcome.error is None:
        return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
    return DeletableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error.code,
        error_message=outcome.error.message or None,
    )
