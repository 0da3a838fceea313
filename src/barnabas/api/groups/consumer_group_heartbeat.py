"""ConsumerGroupHeartbeat (68), v0-v1: a member of a consumer group joins, heartbeats or leaves (KIP-848).

v1: SubscribedTopicRegex; the member chooses its id (KIP-1082).
Errors: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION if the protocol is disabled,
INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED,
UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID; those of all coordinators.
"""

from collections.abc import Iterable
from contextlib import suppress

from barnabas.api.authorization import allowed_now, ask_authorizer, authorization_errors, require
from barnabas.api.context import RequestContext
from barnabas.api.listed_topics import is_listed
from barnabas.api.registry import serves
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.regex import matching
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def error_response(
    request: ConsumerGroupHeartbeatRequest, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)


@serves(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, 0, 1, error_response=error_response)
async def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    check_consumer_protocol(context)
    await require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    names = await context.compute(set, request.subscribed_topic_names or ())
    hidden = await authorization_errors(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    if hidden:
        raise hidden[min(hidden)]
    if request.subscribed_topic_regex:
        with suppress(KafkaError):  # the group reports the error
            await context.broker.worker.call(  # it may take long, and is cached for the group
                matching, request.subscribed_topic_regex, context.broker.image.topics
            )
    caller = Caller(
        client_id=context.client_id or "",
        client_host=f"/{context.connection.client_host}",
        api_version=context.api_version,
        visible_topics=lambda topics: _visible(context, topics),
    )
    while True:
        try:
            return await context.broker.groups.handle_request(
                request.group_id,
                lambda shard, result, pending: shard.consumer_heartbeat(result, pending, request, caller),
                "ConsumerGroupHeartbeat",
            )
        except _MustAsk as error:
            await ask_authorizer(context, AclOperation.DESCRIBE, ResourceType.TOPIC, error.topics)


class _MustAsk(KafkaError):
    """The group has decided nothing yet: the authorizer must be asked whether topics are visible."""

    def __init__(self, topics: list[str]) -> None:
        super().__init__(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        self.topics = topics


def _visible(context: RequestContext, topics: Iterable[str]) -> set[str]:
    """Return the topics that the principal may describe, of those that match the expressions of the group.

    :raises _MustAsk: If the authorizer must be asked for some.
    """
    listed = [topic for topic in topics if is_listed(context, topic)]
    decisions = {
        topic: allowed_now(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic) for topic in listed
    }
    unknown = [topic for topic, decision in decisions.items() if decision is None]
    if unknown:
        raise _MustAsk(unknown)
    return {topic for topic, decision in decisions.items() if decision}


def check_consumer_protocol(context: RequestContext) -> None:
    """Check that the consumer protocol is enabled.

    :raises KafkaError: UNSUPPORTED_VERSION, as in Apache Kafka without a message.
    """
    is_enabled = "consumer" in context.broker.config.items("group.coordinator.rebalance.protocols")
    if not is_enabled or context.broker.image.finalized_features.get("group.version", 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
