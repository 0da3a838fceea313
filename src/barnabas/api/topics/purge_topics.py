"""PurgeTopics (32004), v0: delete topics in the trash for good.

An API of Barnabas.

Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, TOPIC_DELETION_DISABLED,
TOPIC_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import topic_authorization_errors
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.undeletion import Purged, TrashedTopicRequest, decide_purge
from barnabas.wire.acls import AclOperation
from barnabas.wire.barnabas_messages.purge_topics import PurgedTopic, PurgeTopicsRequest, PurgeTopicsResponse
from barnabas.wire.errors import ErrorCode, KafkaError


def _requested(request: PurgeTopicsRequest) -> list[TrashedTopicRequest]:
    return [TrashedTopicRequest(topic.name, topic.topic_id) for topic in request.topics]


def error_response(request: PurgeTopicsRequest, error: KafkaError) -> PurgeTopicsResponse:
    return PurgeTopicsResponse(
        results=[_result(Purged(requested, error=error)) for requested in _requested(request)]
    )


def audit(_request: PurgeTopicsRequest, response: PurgeTopicsResponse) -> Results:
    return ((f"topic/{topic.name}", topic.error_code, topic.error_message) for topic in response.results)


@serves(
    PurgeTopicsRequest,
    PurgeTopicsResponse,
    0,
    0,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: PurgeTopicsRequest) -> PurgeTopicsResponse:
    if not context.broker.config.boolean("delete.topic.enable"):
        message = "Topics cannot be deleted here: delete.topic.enable is false."
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, message)
    requested_topics = await context.compute(_requested, request)
    names = await context.compute(lambda: {requested.name for requested in requested_topics})
    refused = await topic_authorization_errors(context, AclOperation.DELETE, names)
    authorized = await context.compute(
        lambda: [requested for requested in requested_topics if requested.name not in refused]
    )
    outcomes = await context.write_each(
        authorized,
        decide_purge,
        lambda requested, error: Purged(requested, error=error),
        key=lambda requested: requested.name,  # a name may mean several topics, until the others are purged
    )
    outcomes += [
        Purged(requested, error=refused[requested.name])
        for requested in requested_topics
        if requested.name in refused
    ]
    results = [_result(outcome) async for outcome in context.each(outcomes)]
    context.free(requested_topics, names, refused, authorized, outcomes)
    return PurgeTopicsResponse(results=results)


def _result(outcome: Purged) -> PurgedTopic:
    name = outcome.requested.name if outcome.topic is None else outcome.topic.name
    topic_id = outcome.requested.topic_id if outcome.topic is None else outcome.topic.topic_id
    if outcome.error is None:
        return PurgedTopic(name=name, topic_id=topic_id)
    error = outcome.error
    return PurgedTopic(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message or None
    )
