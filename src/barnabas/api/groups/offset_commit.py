"""OffsetCommit (8), v0-v10: remember how far a group has read.

v1: generation, member, a timestamp for each partition.  v2: a retention instead (until v4).  v6: leader epochs.
v7: static members.  v9: member epochs, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-848).  v10: topic ids (KIP-848).
v0 had its offsets in ZooKeeper; they are the coordinator's like all others.
Errors, per partition: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
REBALANCE_IN_PROGRESS, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
COORDINATOR_NOT_AVAILABLE.
"""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.groups.known_partitions import Refused, merge, sift
from barnabas.api.groups.pieces import pieces
from barnabas.api.registry import serves
from barnabas.metadata.image import Image
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_TOPIC_IDS = 10


def refuse(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    """Every partition, in error."""
    return OffsetCommitResponse(topics=[_refused(_whole(topic, error.code)) for topic in request.topics])


@serves(OffsetCommitRequest, OffsetCommitResponse, 0, 10, refuse=refuse)
async def handle(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Leave out what is not there or not allowed; the group's coordinator decides on the rest."""
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    topics: list[OffsetCommitRequestTopic] = request.topics
    refused: list[Refused] = []
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topics, refused = by_id(context.node.image, topics)
    known, unknown = await sift(context, AclOperation.READ, topics)
    refused += unknown
    if not refused and topics is request.topics and not context.is_large:  # as nearly always
        return await _commit(context, request)
    errors = [_refused(each) for each in refused]
    if not known:
        return OffsetCommitResponse(topics=await context.compute(merge, errors, []))
    answered: list[OffsetCommitResponseTopic] = []
    async for piece in context.each(pieces(known)):
        answered += (await _commit(context, about(request, piece))).topics
    return OffsetCommitResponse(topics=await context.compute(merge, errors, answered))


async def _commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """What the coordinator says; what was refused before keeps errors of its own."""
    version = context.api_version
    try:
        return await context.node.groups.ask(
            request.group_id,
            lambda shard, step, pending: shard.offsets.commit(step, pending, request, version),
        )
    except KafkaError as error:
        return refuse(request, error)


def about(request: OffsetCommitRequest, topics: list[OffsetCommitRequestTopic]) -> OffsetCommitRequest:
    """The same request about other topics."""
    return OffsetCommitRequest(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        topics,
    )


def by_id(
    image: Image, topics: list[OffsetCommitRequestTopic]
) -> tuple[list[OffsetCommitRequestTopic], list[Refused]]:
    """The topics with their names, and those whose ids nobody knows."""
    names = image.topic_names
    known, refused = [], []
    for topic in topics:
        name = names.get(topic.topic_id)
        if name is None:
            refused.append(_whole(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            known.append(OffsetCommitRequestTopic(name, topic.topic_id, topic.partitions))
    return known, refused


def _whole(topic: OffsetCommitRequestTopic, code: ErrorCode) -> Refused:
    return Refused(topic, [asked.partition_index for asked in topic.partitions], code)


def _refused(refused: Refused) -> OffsetCommitResponseTopic:
    partitions = [OffsetCommitResponsePartition(index, refused.code) for index in refused.indexes]
    return OffsetCommitResponseTopic(refused.topic.name, refused.topic.topic_id, partitions)
