"""RestoreTopicOffsets (32010), v0: commit offsets of an undeleted topic again, for groups that this broker coordinates.

An API of Barnabas for other brokers. Only groups without members get offsets, for partitions without one.

Errors: CLUSTER_AUTHORIZATION_FAILED; per group UNKNOWN_TOPIC_ID until this broker knows that the topic exists again,
NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, those of the coordinator's log.
"""

from barnabas.api.authorization import require_broker
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.groups.offsets.cluster_offsets import by_group
from barnabas.wire.barnabas_messages.restore_topic_offsets import (
    RestoreTopicOffsetsRequest,
    RestoreTopicOffsetsResponse,
)
from barnabas.wire.errors import KafkaError


def error_response(_request: RestoreTopicOffsetsRequest, error: KafkaError) -> RestoreTopicOffsetsResponse:
    return RestoreTopicOffsetsResponse(error_code=error.code, error_message=error.message or None)


@serves(RestoreTopicOffsetsRequest, RestoreTopicOffsetsResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: RestoreTopicOffsetsRequest) -> RestoreTopicOffsetsResponse:
    await require_broker(context)
    offsets = await context.compute(by_group, request.offsets)
    groups = await context.broker.cluster_offsets.restore_here(request.name, request.topic_id, offsets)
    return RestoreTopicOffsetsResponse(groups=groups)
