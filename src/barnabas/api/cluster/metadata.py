"""Metadata (3), v0-v13: brokers, topics and partitions; creates missing topics if request and broker allow it.

v1: null means all topics, empty means none (v0: empty means all).  v4: auto-creation by flag.  v5: offline replicas.
v7: leader epochs.  v8: authorized operations (KIP-430).  v10: topic ids.  v12: topics by id.
v13: a top-level error.
Errors, per topic: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION;
INVALID_REQUEST for a request that the rules above forbid.
"""

import asyncio
from collections.abc import Collection, Container, Iterable, Sequence

from barnabas.api.authorization import (
    allowed,
    ask_authorizer,
    ask_for_operations,
    authorization_errors,
    authorized_cluster_operations,
    authorized_operations_now,
    filter_allowed,
    topic_authorization_errors,
)
from barnabas.api.cluster.brokers import reachable_brokers
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.listed_topics import is_listed
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.api.topics.topic_creator import create_missing_topics
from barnabas.base.ids import ZERO_UUID
from barnabas.base.topic_names import INTERNAL_TOPICS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import TopicImage, check_name
from barnabas.security.operations import NOT_ASKED
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.codec import encode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

_log = get_logger("barnabas.api.metadata")

#: Encoded responses with all topics that are cached: one for each version and listener.
_CACHED_COUNT_MAX = 16

_ELECTION_POLL_S = 0.02


def error_response(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or []
    ]
    return MetadataResponse(error_code=error.code, topics=topics)


@serves(MetadataRequest, MetadataResponse, 0, 13, error_response=error_response)
async def handle(context: RequestContext, request: MetadataRequest) -> MetadataResponse | EncodedResponse:
    """Describe the named topics, or all; topics are created before the response."""
    await context.compute(_check, context, request)
    if request.topics != []:
        await _wait_for_election(context)
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return await _all_topics(context, request)
    started_ns = context.broker.tracer.now_ns()
    topic_ids, names = await context.compute(_ids_and_names, request.topics)
    if topic_ids:  # one id makes it a request by ids, and names are ignored
        topics = await _by_ids(context, request, topic_ids)
    else:
        topics = await _by_names(context, request, names)
    if context.broker.tracer.enabled:
        context.broker.tracer.record(
            "barnabas.metadata",
            started_ns,
            context.span,
            topics=",".join(topic.name or "" for topic in topics),
            auto_create=request.allow_auto_topic_creation,
        )
    return await _response(context, request, topics)


async def _wait_for_election(context: RequestContext) -> None:
    """Wait while a leader may just have died, so that the response names the next one.

    A client asks at once when it loses its connection to the leader. If it gets the dead leader again, it may not ask
    once more for seconds: franz-go for five.
    """
    while context.broker.expects_election():
        await asyncio.sleep(_ELECTION_POLL_S)


def _ids_and_names(topics: Iterable[MetadataRequestTopic]) -> tuple[dict[bytes, None], dict[str, None]]:
    """Return each requested id and name once, in order."""
    topic_ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    return topic_ids, dict.fromkeys(topic.name or "" for topic in topics)


def _check(context: RequestContext, request: MetadataRequest) -> None:
    for topic in request.topics or []:
        by_id = topic.topic_id != ZERO_UUID
        if by_id and context.api_version < 12:
            message = (
                f"Metadata version {context.api_version} has no topic ids: they need version 12 or later."
            )
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if topic.name is None and context.api_version < 12:
            message = f"Metadata version {context.api_version} needs a name for each topic."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    topics = request.topics or []
    if any(topic.name is None for topic in topics) and all(topic.topic_id == ZERO_UUID for topic in topics):
        message = "A topic without a name needs an id."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


async def _all_topics(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | EncodedResponse:
    """Return the response with all topics, which is encoded once for a revision of the metadata.

    A user's authorizer may decide otherwise at any time, so with one nothing is cached.
    """
    cache = context.broker.metadata_responses
    image = context.broker.image
    operations_flags = (
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
    )
    connection = context.connection
    key = (
        context.api_version,
        connection.listener,
        connection.is_own_client,
        *operations_flags,
        *_visibility_key(context),
    )
    cached = None if context.broker.asks_authorizer else cache.get(key)
    if cached is None or cached[0] != image.revision:
        names = [name async for name in context.each(image.topics) if is_listed(context, name)]
        visible = await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
        await _ask_for_operations(context, request, visible)
        topics = [
            _describe(context, request, image.topics[name], image)
            async for name in context.each(names)
            if name in visible
        ]
        response = await _response(context, request, topics)
        body = bytes(await context.broker.worker.call(encode, response, context.api_version))
        cached = image.revision, body
        if not context.broker.asks_authorizer:
            if len(cache) >= _CACHED_COUNT_MAX:
                cache.clear()
            cache[key] = cached
    return EncodedResponse(cached[1], 0 if context.api_version >= 3 else None)


def _visibility_key(context: RequestContext) -> tuple[object, ...]:
    """Return the cache key of a response that is filtered by the caller's permissions."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        return ()
    return authorizer.version, context.connection.principal, context.connection.client_host


async def _by_names(
    context: RequestContext, request: MetadataRequest, names: Collection[str]
) -> list[MetadataResponseTopic]:
    """Describe topics, then create missing ones if request and broker allow it.

    As in Apache Kafka, a topic that this request creates is unknown in its response. The client retries, and the topic
    exists then, because the response waits for it.
    """
    broker = context.broker
    hidden = await authorization_errors(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    missing: list[str] = []
    if request.allow_auto_topic_creation and broker.config.boolean("auto.create.topics.enable"):
        missing = [name for name in names if name not in hidden and name not in broker.image.topics]
    if missing:
        hidden = hidden | await topic_authorization_errors(context, AclOperation.CREATE, missing)
    await _ask_for_operations(context, request, (name for name in names if name not in hidden))
    topics = [_by_name(context, request, name, hidden.keys()) async for name in context.each(names)]
    to_create = [name for name in missing if name not in hidden]
    if to_create:
        await _auto_create(context, to_create)
    return topics


async def _auto_create(context: RequestContext, names: Iterable[str]) -> None:
    with mutations(context, strict_from=None) as quota:
        outcomes = await create_missing_topics(context, names, quota)
    for outcome in outcomes:
        error = outcome.error
        if (
            error is not None and outcome.name not in context.broker.image.topics
        ):  # another request created it first
            reason = {"error": error.code.name, "message": error.message}  # the response has no field for it
            _log.info("a topic was not auto-created", topic=outcome.name, **reason)


async def _by_ids(
    context: RequestContext, request: MetadataRequest, topic_ids: Collection[bytes]
) -> list[MetadataResponseTopic]:
    if context.broker.asks_authorizer:
        by_id = context.broker.image.topic_names
        names = [name for topic_id in topic_ids if (name := by_id.get(topic_id)) is not None]
        await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
        await _ask_for_operations(context, request, names)
    return [await _by_id(context, request, topic_id) async for topic_id in context.each(topic_ids)]


async def _ask_for_operations(
    context: RequestContext, request: MetadataRequest, names: Iterable[str]
) -> None:
    if request.include_topic_authorized_operations:
        await ask_for_operations(context, ResourceType.TOPIC, names)


async def _by_id(context: RequestContext, request: MetadataRequest, topic_id: bytes) -> MetadataResponseTopic:
    topic = context.broker.image.topic_by_id(topic_id)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id)
    if not await allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id)
    return _describe(context, request, topic, context.broker.image)


def _by_name(
    context: RequestContext, request: MetadataRequest, name: str, hidden: Container[str]
) -> MetadataResponseTopic:
    if name in hidden:
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    topic = context.broker.image.topics.get(name)
    if topic is not None:
        return _describe(context, request, topic, context.broker.image)
    return MetadataResponseTopic(
        error_code=_missing_code(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=_operations(context, request, name),
    )


def _missing_code(name: str) -> ErrorCode:
    try:
        check_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _describe(
    context: RequestContext, request: MetadataRequest, topic: TopicImage, image: MetadataImage
) -> MetadataResponseTopic:
    described = context.broker.topic_descriptions.describe(image, topic)
    described.topic_authorized_operations = _operations(context, request, topic.name)
    return described


def _operations(context: RequestContext, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return NOT_ASKED
    return authorized_operations_now(context, ResourceType.TOPIC, name)


async def _response(
    context: RequestContext, request: MetadataRequest, topics: Sequence[MetadataResponseTopic]
) -> MetadataResponse:
    include_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in reachable_brokers(context)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.controller_id,
        topics=list(topics),
        cluster_authorized_operations=await authorized_cluster_operations(context)
        if include_operations
        else NOT_ASKED,
    )
