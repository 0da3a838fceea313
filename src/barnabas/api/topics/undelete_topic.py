"""UndeleteTopic (32003), v0: restore a deleted topic from the trash, with its id, configs and records.

An API of Barnabas. It requires CREATE on the new name (or on the cluster) and DELETE on the old one; if they differ,
also READ on the old one, because its records can be read under the new name. Committed offsets are restored for groups
without members that have no offset for the partition now.

Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION,
POLICY_VIOLATION, REQUEST_TIMED_OUT, THROTTLING_QUOTA_EXCEEDED, TOPIC_AUTHORIZATION_FAILED.
"""

from collections.abc import Mapping

from barnabas.api.audit import Results
from barnabas.api.authorization import require, topic_refusals
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.throttling import mutations
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.shard import GroupShard
from barnabas.metadata.trash import TrashRecord
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_undelete
from barnabas.policy import CreateTopicPolicy
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest, UndeleteTopicResponse
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.api.topics")


def error_response(request: UndeleteTopicRequest, error: KafkaError) -> UndeleteTopicResponse:
    name, topic_id = request.name, request.topic_id
    return UndeleteTopicResponse(
        error_code=error.code, error_message=error.message or None, name=name, topic_id=topic_id
    )


def audit(request: UndeleteTopicRequest, response: UndeleteTopicResponse) -> Results:
    return [(f"topic/{request.name}", response.error_code, response.error_message)]


@serves(UndeleteTopicRequest, UndeleteTopicResponse, 0, 0, error_response=error_response, audit=audit)
async def handle(context: RequestContext, request: UndeleteTopicRequest) -> UndeleteTopicResponse:
    """Evaluate the policies as for a new topic, and restore it; respond when the logs are open."""
    requested = TrashedTopicRequest(request.name, request.topic_id)
    await _authorize(context, request.name, request.name if request.new_name is None else request.new_name)
    trial = decide_undelete(context.broker.image, requested, request.new_name).response
    await context.policies.check_create_topic(_request_metadata(trial))
    with mutations(context, strict_from=0) as quota:
        trashed = await context.write(
            lambda image: decide_undelete(image, requested, request.new_name, quota.admit([requested])),
            request.timeout_ms,
        )
    offset_count = sum(
        [await _restore(context, trashed, group_id, offsets) for group_id, offsets in trashed.offsets.items()]
    )
    return UndeleteTopicResponse(
        name=trashed.name,
        topic_id=trashed.topic_id,
        partition_count=trashed.topic.partition_count,
        offset_count=offset_count,
    )


async def _restore(
    context: RequestContext, trashed: TrashRecord, group_id: str, offsets: Mapping[int, CommittedOffset]
) -> int:
    """Restore the committed offsets of a group; return how many. An error does not prevent the restoration of the
    topic.
    """
    of_topic = {index: committed._replace(topic_id=trashed.topic_id) for index, committed in offsets.items()}

    def restore(shard: GroupShard, result: CoordinatorResult, pending: Pending[int]) -> None:
        shard.offsets.restore(result, pending, group_id, trashed.name, of_topic)

    try:
        return await context.broker.groups.handle_request(group_id, restore)
    except KafkaError as error:
        _log.warning(
            "cannot restore the committed offsets of a topic",
            group=group_id,
            topic=trashed.name,
            error=error.code.name,
        )
        return 0


async def _authorize(context: RequestContext, old_name: str, new_name: str) -> None:
    for error in (await topic_refusals(context, AclOperation.CREATE, [new_name])).values():
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
