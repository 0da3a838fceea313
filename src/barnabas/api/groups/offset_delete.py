"""OffsetDelete (47), v0: forget offsets of topics that no member is subscribed to (KIP-496).

Errors: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; per partition: TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
"""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.groups.known_partitions import Refused, merge, sift
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def refuse(request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    """The error at the top."""
    return OffsetDeleteResponse(error_code=error.code)


@serves(OffsetDeleteRequest, OffsetDeleteResponse, 0, 0, refuse=refuse)
async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Leave out what is not there or not allowed; the group's coordinator decides on the rest."""
    require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    known, refused = sift(context, AclOperation.READ, request.topics)
    errors = [_refused(each) for each in refused]
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group id is needed: it is empty.")
    wanted = OffsetDeleteRequest(request.group_id, known)
    answer: OffsetDeleteResponse = await context.node.groups.ask(
        request.group_id, lambda shard, step, pending: shard.offsets.delete(step, pending, wanted)
    )
    return OffsetDeleteResponse(topics=merge(errors, answer.topics))


def _refused(refused: Refused) -> OffsetDeleteResponseTopic:
    partitions = [OffsetDeleteResponsePartition(index, refused.code) for index in refused.indexes]
    return OffsetDeleteResponseTopic(refused.topic.name, partitions)
