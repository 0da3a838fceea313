"""OffsetCommit (8), v0-v10: commit offsets of a group.

v1: generation, member, a timestamp for each partition.  v2: a retention instead (until v4).  v6: leader epochs.
v7: static members.  v9: member epochs, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-848).  v10: topic ids (KIP-848).
v0 stored offsets in ZooKeeper; here it is like the others.
Errors, per partition: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
REBALANCE_IN_PROGRESS, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
COORDINATOR_NOT_AVAILABLE.
"""

from collections.abc import Coroutine, Sequence
from typing import Any

from barnabas.api.authorization import allowed_now, require
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.groups.offset_commit_codec import (
    FIRST_VERSION,
    FIRST_VERSION_WITH_TOPIC_IDS,
    read_request,
    write_response,
)
from barnabas.api.groups.partition_checks import RejectedPartitions, merge, reject, split_known_partitions
from barnabas.api.groups.topic_slices import request_slices
from barnabas.api.registry import USE_HANDLER, UseHandler, serves
from barnabas.groups.offsets.commits import PartitionCommit, TopicCommit
from barnabas.metadata.image import MetadataImage
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def error_response(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_error_topic(reject(topic, error.code)) for topic in request.topics])


def fast_path(
    context: RequestContext, frame: memoryview, position: int
) -> EncodedResponse | Coroutine[Any, Any, EncodedResponse] | UseHandler:
    """Commit offsets if all partitions exist and are authorized, as in nearly all requests."""
    version = context.api_version
    if version < FIRST_VERSION:
        return USE_HANDLER
    commit = read_request(bytes(frame[position:]), version)
    names = [_name(context, topic, partitions) for topic, partitions in commit.topics]
    if (
        None in names
        or len(set(names)) < len(names)
        or not allowed_now(context, AclOperation.READ, ResourceType.GROUP, commit.group_id)
    ):
        return USE_HANDLER
    topics = commit.topics
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        by_name = [(str(name), partitions) for name, (_, partitions) in zip(names, topics, strict=True)]
        commit = commit._replace(topics=by_name)
    try:
        codes = context.broker.groups.runner(commit.group_id).write(
            lambda shard, result: shard.offsets.commit_offsets(result, commit, version)
        )
    except KafkaError:
        return USE_HANDLER
    if isinstance(codes, Coroutine):
        return _respond_later(version, topics, codes)
    return EncodedResponse(*write_response(version, topics, codes))


def _name(context: RequestContext, topic: str | bytes, partitions: Sequence[PartitionCommit]) -> str | None:
    """Return the topic's name if all partitions exist and the principal may read them."""
    image = context.broker.image
    name = image.topic_names.get(topic) if isinstance(topic, bytes) else topic
    known = None if name is None else image.topics.rows.get(name)
    if name is None or known is None or not partitions:
        return None
    if not allowed_now(context, AclOperation.READ, ResourceType.TOPIC, name):
        return None
    count = known.partition_count
    for partition in partitions:
        if not 0 <= partition[0] < count:
            return None
    return name


async def _respond_later(
    version: int, topics: Sequence[TopicCommit], committing: Coroutine[Any, Any, list[list[ErrorCode]]]
) -> EncodedResponse:
    try:
        codes = await committing
    except KafkaError as error:
        codes = [[error.code] * len(partitions) for _, partitions in topics]
    return EncodedResponse(*write_response(version, topics, codes))


@serves(OffsetCommitRequest, OffsetCommitResponse, 0, 10, error_response=error_response, fast_path=fast_path)
async def handle(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Refuse unknown and unauthorized partitions; the group's coordinator decides on the others."""
    await require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    topics: list[OffsetCommitRequestTopic] = request.topics
    refused: list[RejectedPartitions] = []
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topics, refused = await context.compute(by_id, context.broker.image, topics)
    known, unknown = await split_known_partitions(context, AclOperation.READ, topics)
    refused += unknown
    if not refused and topics is request.topics and not context.is_large:  # as in nearly all requests
        return await _commit(context, request)
    errors = await context.compute(lambda: [_error_topic(rejected) for rejected in refused])
    if not known:
        return OffsetCommitResponse(topics=await context.compute(merge, errors, []))
    answered: list[OffsetCommitResponseTopic] = []
    async for part in context.each(request_slices(request, known)):
        answered += (await _commit(context, part)).topics
    return OffsetCommitResponse(topics=await context.compute(merge, errors, answered))


async def _commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Return the response of the coordinator, with the errors of refused partitions."""
    version = context.api_version
    try:
        return await context.broker.groups.handle_request(
            request.group_id,
            lambda shard, result, pending: shard.offsets.commit(result, pending, request, version),
        )
    except KafkaError as error:
        return error_response(request, error)


def by_id(
    image: MetadataImage, topics: list[OffsetCommitRequestTopic]
) -> tuple[list[OffsetCommitRequestTopic], list[RejectedPartitions]]:
    """Return the topics with their names, and those with unknown ids."""
    names = image.topic_names
    known, refused = [], []
    for topic in topics:
        name = names.get(topic.topic_id)
        if name is None:
            refused.append(reject(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            known.append(OffsetCommitRequestTopic(name, topic.topic_id, topic.partitions))
    return known, refused


def _error_topic(rejected: RejectedPartitions) -> OffsetCommitResponseTopic:
    partitions = [OffsetCommitResponsePartition(index, rejected.code) for index in rejected.indexes]
    return OffsetCommitResponseTopic(rejected.topic.name, rejected.topic.topic_id, partitions)
