"""UndeleteTopic (32003), v0: restore a deleted topic from the trash, with its id, configs and records.

An API of Barnabas. It requires CREATE on the new name (or on the cluster) and DELETE on the old one; if they differ,
also READ on the old one, because its records can be read under the new name. Committed offsets are restored for groups
without members that have no offset for the partition now.

Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION,
POLICY_VIOLATION, REQUEST_TIMED_OUT, THROTTLING_QUOTA_EXCEEDED, TOPIC_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require, topic_authorization_errors
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.metadata.trash import TrashRecord
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_undelete
from barnabas.policy import CreateTopicPolicy
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest, UndeleteTopicResponse
from barnabas.wire.errors import KafkaError


def error_response(request: UndeleteTopicRequest, error: KafkaError) -> UndeleteTopicResponse:
    name, topic_id = request.name, request.topic_id
    return UndeleteTopicResponse(
        error_code=error.code, error_message=error.message or None, name=name, topic_id=topic_id
    )


def audit(request: UndeleteTopicRequest, response: UndeleteTopicResponse) -> Results:
    return [(f"topic/{request.name}", response.error_code, response.error_message)]


@serves(
    UndeleteTopicRequest,
    UndeleteTopicResponse,
    0,
    0,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: UndeleteTopicRequest) -> UndeleteTopicResponse:
    """Evaluate the policies as for a new topic, and restore it; respond when the logs are open."""
    requested = TrashedTopicRequest(request.name, request.topic_id)
    await _authorize(context, request.name, request.name if request.new_name is None else request.new_name)
    trial = decide_undelete(context.broker.image, requested, request.new_name).response
    await context.policies.check_create_topic(_request_metadata(trial))
    undeleting = _undelete(context, request, requested)
    return await context.broker.metadata.within(request.timeout_ms, undeleting)


async def _undelete(
    context: RequestContext, request: UndeleteTopicRequest, requested: TrashedTopicRequest
) -> UndeleteTopicResponse:
    """Restore the topic, then its offsets, of which no other copy is left: also if the request has timed out."""
    with mutations(context, strict_from=0) as quota:
        trashed = await context.write(
            lambda image: decide_undelete(
                image,
                requested,
                request.new_name,
                quota.admit([requested]),
                context.broker.config.integer("min.insync.replicas"),
            )
        )
    offset_count = await context.broker.cluster_offsets.restore(trashed)
    return UndeleteTopicResponse(
        name=trashed.name,
        topic_id=trashed.topic_id,
        partition_count=trashed.topic.partition_count,
        offset_count=offset_count,
    )


async def _authorize(context: RequestContext, old_name: str, new_name: str) -> None:
    for error in (await topic_authorization_errors(context, AclOperation.CREATE, [new_name])).values():
        raise error
    await require(context, AclOperation.DELETE, ResourceType.TOPIC, old_name)
    if new_name != old_name:
        await require(context, AclOperation.READ, ResourceType.TOPIC, old_name)


def _request_metadata(trashed: TrashRecord) -> CreateTopicPolicy.RequestMetadata:
    topic = trashed.topic
    return CreateTopicPolicy.RequestMetadata(
        topic=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        replicas_assignments=None,
        configs=trashed.configs,
    )
