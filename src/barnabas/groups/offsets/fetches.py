"""OffsetFetch: committed offsets."""

from collections.abc import Iterable, Mapping

from barnabas.base.ids import ZERO_UUID
from barnabas.groups.offsets.table import StoredOffset
from barnabas.wire.coordinator_records.committed_offset import (
    decode_partition,
    decode_value,
    encode_index,
    encode_topic,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET, NO_LEADER_EPOCH, NO_METADATA = -1, -1, ""


def fetch(
    requested: OffsetFetchRequestGroup, offsets: Mapping[bytes, StoredOffset], unstable: frozenset[bytes]
) -> OffsetFetchResponseGroup:
    """Return the response for one group, with all its partitions if no topics are named."""
    if requested.topics is None:
        return OffsetFetchResponseGroup(requested.group_id, fetch_all(offsets, unstable))
    return OffsetFetchResponseGroup(requested.group_id, fetch_topics(requested.topics, offsets, unstable))


def fetch_topics(
    requested: Iterable[OffsetFetchRequestTopics],
    offsets: Mapping[bytes, StoredOffset],
    unstable: frozenset[bytes],
) -> list[OffsetFetchResponseTopics]:
    """Return the committed offsets of the requested partitions; -1 if there is none.

    `unstable` partitions get UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    return [
        OffsetFetchResponseTopics(topic.name, topic.topic_id, _requested_partitions(topic, offsets, unstable))
        for topic in requested
    ]


def fetch_all(
    offsets: Mapping[bytes, StoredOffset], unstable: frozenset[bytes]
) -> list[OffsetFetchResponseTopics]:
    """Return all committed offsets of a group, by topic."""
    topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for partition, stored in offsets.items():
        name, index = decode_partition(partition)
        response = (
            _unstable(index) if partition in unstable else _to_response_partition(index, stored, ZERO_UUID)
        )
        topics.setdefault(name, []).append(response)
    return [OffsetFetchResponseTopics(name=name, partitions=responses) for name, responses in topics.items()]


def _requested_partitions(
    topic: OffsetFetchRequestTopics, offsets: Mapping[bytes, StoredOffset], unstable: frozenset[bytes]
) -> list[OffsetFetchResponsePartitions]:
    topic_id = topic.topic_id
    key_start = encode_topic(topic.name)
    responses = []
    for index in topic.partition_indexes:
        partition = key_start + encode_index(index)
        stored = offsets.get(partition)
        if partition in unstable:
            responses.append(_unstable(index))
        elif stored is None:
            responses.append(_no_offset(index))
        else:
            responses.append(_to_response_partition(index, stored, topic_id))
    return responses


def _to_response_partition(
    index: int, stored: StoredOffset, topic_id: bytes
) -> OffsetFetchResponsePartitions:
    """Return the stored offset, unless it belongs to a topic with another id; ZERO_UUID matches any."""
    committed = decode_value(stored[1])
    if ZERO_UUID not in (topic_id, committed.topic_id) and committed.topic_id != topic_id:
        return _no_offset(index)
    return OffsetFetchResponsePartitions(index, committed.offset, committed.leader_epoch, committed.metadata)


def _no_offset(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, NO_OFFSET, NO_LEADER_EPOCH, NO_METADATA)


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        index, NO_OFFSET, NO_LEADER_EPOCH, NO_METADATA, ErrorCode.UNSTABLE_OFFSET_COMMIT
    )
