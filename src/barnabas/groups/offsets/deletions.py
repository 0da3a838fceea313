"""Deletion of offsets: on request, with their group, with their topic."""

from itertools import chain, islice

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.group import Group
from barnabas.groups.offsets.table import OffsetTable, StoredOffset
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import (
    INDEX_BYTES,
    decode_partition,
    decode_value,
    encode_group,
    encode_partition,
    encode_topic,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def delete_topic(
    result: CoordinatorResult, table: OffsetTable, group: Group, topic: OffsetDeleteRequestTopic
) -> OffsetDeleteResponseTopic:
    """Delete a group's offsets of a topic, unless a member subscribes to it."""
    code = ErrorCode.NONE
    if group.is_subscribed_to(topic.name):
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    else:
        offsets, key_head = table.of_group(group.group_id), encode_group(group.group_id)
        for requested in topic.partitions:
            partition = encode_partition(topic.name, requested.partition_index)
            if partition in offsets or table.is_open(group.group_id, partition):
                result.append_encoded(key_head + partition, None)
    return OffsetDeleteResponseTopic(
        topic.name,
        [OffsetDeleteResponsePartition(requested.partition_index, code) for requested in topic.partitions],
    )


def delete_some(
    result: CoordinatorResult, table: OffsetTable, group_id: str, count_max: int
) -> tuple[list[bytes], bool]:
    """Delete up to `count_max` offsets of a group; return their partitions, and whether none is left."""
    committed = table.of_group(group_id)
    remaining = chain(committed, table.open_partitions(group_id) - committed.keys())
    partitions = sorted(islice(remaining, count_max))
    key_head = encode_group(group_id)
    for partition in partitions:
        result.append_encoded(key_head + partition, None)
    result.is_atomic = False
    return partitions, next(remaining, None) is None


def delete_topics(
    result: CoordinatorResult,
    table: OffsetTable,
    before: MetadataImage,
    after: MetadataImage,
    present: MetadataImage,
) -> None:
    """Delete the offsets of deleted topics: a later topic of the same name is a different one.

    :param present: Topics that are in it were undeleted, after this was tried without success.
    """
    known = before.deleted_topics.keys() | before.trashed_topics.keys()
    deleted = {
        topic.name: topic.topic_id
        for table_of_topics in (after.deleted_topics, after.trashed_topics)
        for key, topic in table_of_topics.items()
        if key not in known and present.topic_by_id(topic.topic_id) is None
    }
    if not deleted:
        return
    encoded_topics = frozenset(map(encode_topic, deleted))

    def is_deleted(partition: bytes, stored: StoredOffset) -> bool:
        if partition[:-INDEX_BYTES] not in encoded_topics:
            return False
        topic_id = decode_value(stored[1]).topic_id
        return topic_id in (ZERO_UUID, deleted[decode_partition(partition)[0]])

    result.is_atomic = False
    keys = dict.fromkeys(
        encode_group(group_id) + partition
        for group_id, partition, stored in table.all_offsets()
        if is_deleted(partition, stored)
    )
    for key in keys:
        result.append_encoded(key, None)
