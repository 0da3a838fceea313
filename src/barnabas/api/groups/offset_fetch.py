"""OffsetFetch (9), v0-v10: the committed offsets of groups.

v2: all topics by null, a top-level error.  v5: leader epochs.  v7: only offsets without pending transactions (KIP-447).
v8: many groups (KIP-709).  v9: member epochs (KIP-848).  v10: topic ids.
v0 stored offsets in ZooKeeper, and returns UNKNOWN_TOPIC_OR_PARTITION if there is no offset.
Errors, per group: GROUP_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID,
UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_OR_PARTITION in v0.
"""

from collections.abc import Mapping

from barnabas.api.authorization import authorization_errors, filter_allowed, require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.groups.offsets.fetches import fetch
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUP_ERRORS = 2
FIRST_VERSION_WITH_MANY_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10

NO_OFFSET, NO_LEADER_EPOCH, NO_METADATA = -1, -1, ""


def error_response(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    alone = _single_group(request)
    return OffsetFetchResponse(
        error_code=error.code,
        topics=[_single_group_topic(_error_topic(topic, error.code)) for topic in alone.topics or ()],
        groups=[_error_group(group, error) for group in request.groups],
    )


@serves(OffsetFetchRequest, OffsetFetchResponse, 0, 10, error_response=error_response)
async def handle(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Pass each group's request to its coordinator; the groups do not affect each other."""
    if context.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        requested_groups = context.each(request.groups)
        groups = [
            await _fetch(context, requested, request.require_stable) async for requested in requested_groups
        ]
        return OffsetFetchResponse(groups=groups)
    requested = _single_group(request)
    group = await _fetch(context, requested, request.require_stable)
    code = group.error_code
    if code and context.api_version < FIRST_VERSION_WITH_GROUP_ERRORS:
        group.topics = [_error_topic(topic, ErrorCode(code)) for topic in requested.topics or ()]
    if context.api_version == 0:
        _add_unknown_topic_errors(group)
    return OffsetFetchResponse(topics=[_single_group_topic(topic) for topic in group.topics], error_code=code)


def _single_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Return the group of a request before v8 as in v8."""
    topics = request.topics
    if topics is None:
        return OffsetFetchRequestGroup(request.group_id, topics=None)
    requested = [
        OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes) for topic in topics
    ]
    return OffsetFetchRequestGroup(request.group_id, topics=requested)


async def _fetch(
    context: RequestContext, requested: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        await require(context, AclOperation.DESCRIBE, ResourceType.GROUP, requested.group_id)
        if requested.topics is None:
            return await _fetch_all(context, requested, require_stable)
        known, refused = await _split_authorized(context, requested.topics)
        if known is not requested.topics:
            requested = OffsetFetchRequestGroup(
                requested.group_id, requested.member_id, requested.member_epoch, known
            )
        group = await _query_coordinator(context, requested, require_stable)
    except KafkaError as error:
        return _error_group(requested, error)
    group.topics += refused
    return group


async def _query_coordinator(
    context: RequestContext, requested: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    if not context.is_large and requested.topics is not None:
        return await context.broker.groups.query(
            requested.group_id,
            lambda shard, now_ms: shard.offsets.fetch(requested, require_stable=require_stable),
        )
    offsets, unstable = await context.broker.groups.query(
        requested.group_id,
        lambda shard, now_ms: shard.offsets.snapshot(requested, require_stable=require_stable),
    )
    return await context.broker.worker.call(fetch, requested, offsets, unstable)


async def _fetch_all(
    context: RequestContext, requested: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Return offsets of all topics that the principal may describe; from v10 on, only of existing ones."""
    group = await _query_coordinator(context, requested, require_stable)
    names = {topic.name for topic in group.topics}
    allowed = await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    topics = [topic for topic in group.topics if topic.name in allowed]
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        there = context.broker.image.topics
        topics = [topic for topic in topics if topic.name in there]
        async for topic in context.each(topics):
            topic.topic_id = there[topic.name].topic_id
    group.topics = topics
    return group


async def _split_authorized(
    context: RequestContext, topics: list[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """Return the topics that the principal may describe, with their names, and the errors of the others.

    The result is `topics` itself if nothing is left out or named.
    """
    refused: list[OffsetFetchResponseTopics] = []
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        names = context.broker.image.topic_names
        topics, refused = await context.compute(_with_names, topics, names)
    requested = {topic.name for topic in topics}
    hidden = await authorization_errors(context, AclOperation.DESCRIBE, ResourceType.TOPIC, requested)
    if not hidden:
        return topics, refused
    refused += [
        _error_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async for topic in context.each(topics)
        if topic.name in hidden
    ]
    return [topic for topic in topics if topic.name not in hidden], refused


def _with_names(
    topics: list[OffsetFetchRequestTopics], names: Mapping[bytes, str]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """Return the topics with the names of their ids, and the errors of unknown ids."""
    refused = [
        _error_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in topics if topic.topic_id not in names
    ]
    known = [
        OffsetFetchRequestTopics(names[topic.topic_id], topic.topic_id, topic.partition_indexes)
        for topic in topics
        if topic.topic_id in names
    ]
    return known, refused


def _error_group(requested: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=error.code)


def _error_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(index, NO_OFFSET, NO_LEADER_EPOCH, NO_METADATA, code)
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _add_unknown_topic_errors(group: OffsetFetchResponseGroup) -> None:
    for topic in group.topics:
        for response in topic.partitions:
            if response.committed_offset == NO_OFFSET and not response.error_code:
                response.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _single_group_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """Return the result for a topic as before v8."""
    return OffsetFetchResponseTopic(
        topic.name,
        [
            OffsetFetchResponsePartition(
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.metadata,
                partition.error_code,
            )
            for partition in topic.partitions
        ],
    )
