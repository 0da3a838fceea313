"""Deletion of offsets: on request, with their group, with their topic."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import chain, islice
from typing import Protocol

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.shard import Step
from barnabas.groups.group import Group
from barnabas.groups.offsets.table import OffsetTable, StoredOffset
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import (
    INDEX_BYTES,
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

#: Offsets that are looked at before other clients are served, when topics have been deleted.
LOOKED_AT_ONCE_MAX = 2_000


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


class _Topic(Protocol):
    @property
    def name(self) -> str:
        pass

    @property
    def topic_id(self) -> bytes:
        pass


class DeletedTopics:
    """Topics whose offsets are to be deleted: a later topic of the same name is a different one."""

    def __init__(
        self,
        topics: Iterable[_Topic],
        image: Callable[[], MetadataImage],
        *,
        includes_unknown: bool,
    ) -> None:
        """:param topics: Those that are in the present image have been undeleted.
        :param includes_unknown: Also delete offsets that were committed under these names without a topic id.
        """
        self._image = image
        self._includes_unknown = includes_unknown
        self._ids: dict[bytes, set[bytes]] = {}  #: by encoded name
        for topic in topics:
            self._ids.setdefault(encode_topic(topic.name), set()).add(topic.topic_id)

    def steps(self, table: OffsetTable) -> Iterator[Step]:
        """Return steps that look at some offsets each."""
        if self._ids:
            keys = table.partitions()
            while some := list(islice(keys, LOOKED_AT_ONCE_MAX)):
                yield partial(self._delete, table, some)

    def _delete(
        self, table: OffsetTable, keys: Sequence[tuple[str, bytes]], result: CoordinatorResult
    ) -> None:
        for group_id, partition in keys:
            topic_ids = self._ids.get(partition[:-INDEX_BYTES])
            if topic_ids is not None and any(
                self._is_deleted(stored, topic_ids) for stored in table.stored(group_id, partition)
            ):
                result.append_encoded(encode_group(group_id) + partition, None)
        result.is_atomic = False

    def _is_deleted(self, stored: StoredOffset, topic_ids: Set[bytes]) -> bool:
        topic_id, there = decode_value(stored[1]).topic_id, self._image().topic_names
        if topic_id == ZERO_UUID:
            return self._includes_unknown and topic_ids.isdisjoint(there)
        return topic_id in topic_ids and topic_id not in there


def deletions(
    before: MetadataImage, after: MetadataImage, image: Callable[[], MetadataImage]
) -> DeletedTopics:
    """Return the topics that changes of the image have deleted."""
    new: list[_Topic] = []
    for earlier, later in (
        (before.deleted_topics, after.deleted_topics),
        (before.trashed_topics, after.trashed_topics),
    ):
        if later is not earlier:
            new += [
                topic
                for key, topic in later.items()
                if key not in before.deleted_topics and key not in before.trashed_topics
            ]
    return DeletedTopics(new, image, includes_unknown=True)


def missed_deletions(before: MetadataImage, image: Callable[[], MetadataImage]) -> DeletedTopics:
    """Return the topics that are known to be deleted, also those that existed in an earlier image.

    A topic that is not in the image may be new: the former coordinator may have known it first.
    """
    after = image()
    gone: list[_Topic] = [*after.deleted_topics.values(), *after.trashed_topics.values()]
    if before.topics is not after.topics:
        gone += [topic for topic in before.topics.values() if topic.topic_id not in after.topic_names]
    return DeletedTopics(gone, image, includes_unknown=False)
