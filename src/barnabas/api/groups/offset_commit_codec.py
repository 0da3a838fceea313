"""Reads OffsetCommit requests and writes their responses in place, without message objects.

The generated messages (`wire/messages/offset_commit.py`) describe the same bytes; tests compare both.
"""

import struct
from collections.abc import Sequence

from barnabas.groups.offsets.commits import (
    NO_RETENTION_MS,
    NOW_MS,
    OffsetCommit,
    PartitionCommit,
    TopicCommit,
)
from barnabas.wire.in_place import count_writer, elements, read_body, write_topic
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.primitives import (
    read_compact_nullable_string,
    read_compact_size,
    read_compact_string,
    read_nullable_string,
    read_size,
    read_string,
    skip_tagged_fields,
)

FIRST_FLEXIBLE_VERSION = OffsetCommitRequest.FLEXIBLE.first
FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_WITH_GROUP_INSTANCE = 7
FIRST_VERSION_WITH_LEADER_EPOCH = 6
LAST_VERSION_WITH_RETENTION = 4
FIRST_VERSION_WITH_THROTTLE_TIME = 3
#: Older versions have other fields, and are read by the message class.
FIRST_VERSION = 2

_unpack_int32 = struct.Struct(">i").unpack_from
_unpack_int64 = struct.Struct(">q").unpack_from
_unpack_offset = struct.Struct(">iq").unpack_from  # partition index, offset
_unpack_position = struct.Struct(">iqi").unpack_from  # partition index, offset, leader epoch
_pack_result = struct.Struct(">ih").pack  # partition index, error code
_pack_flexible_result = struct.Struct(">ihx").pack  # the same, no tagged fields

_NO_LEADER_EPOCH = -1


def read_request(body: bytes, version: int) -> OffsetCommit:
    """Read a request.

    :raises DecodeError: If the bytes are cut short or contain something that the protocol forbids.
    """
    read = _read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain
    return read_body(OffsetCommitRequest, version, read, body, 0)


def _read_plain(body: bytes, position: int, version: int) -> tuple[OffsetCommit, int]:
    group_id, position = read_string(body, position)
    generation = _unpack_int32(body, position)[0]
    member_id, position = read_string(body, position + 4)
    group_instance_id, retention_ms = None, NO_RETENTION_MS
    if version >= FIRST_VERSION_WITH_GROUP_INSTANCE:
        group_instance_id, position = read_nullable_string(body, position)
    if version <= LAST_VERSION_WITH_RETENTION:
        retention_ms = _unpack_int64(body, position)[0]
        position += 8
    topics_count, position = read_size(body, position)
    topics: list[TopicCommit] = []
    for _ in elements(topics_count):
        name, position = read_string(body, position)
        partitions_count, position = read_size(body, position)
        partitions: list[PartitionCommit] = []
        for _ in elements(partitions_count):
            if version >= FIRST_VERSION_WITH_LEADER_EPOCH:
                index, offset, leader_epoch = _unpack_position(body, position)
                position += 16
            else:
                index, offset = _unpack_offset(body, position)
                position, leader_epoch = position + 12, _NO_LEADER_EPOCH
            metadata, position = read_nullable_string(body, position)
            partitions.append((index, offset, leader_epoch, metadata or "", NOW_MS))
        topics.append((name, partitions))
    commit = OffsetCommit(group_id, generation, member_id, group_instance_id, retention_ms, topics)
    return commit, position


def _read_flexible(body: bytes, position: int, version: int) -> tuple[OffsetCommit, int]:
    group_id, position = read_compact_string(body, position)
    generation = _unpack_int32(body, position)[0]
    member_id, position = read_compact_string(body, position + 4)
    group_instance_id, position = read_compact_nullable_string(body, position)
    topics_count, position = read_compact_size(body, position)
    topics: list[TopicCommit] = []
    for _ in elements(topics_count):
        topic: str | bytes
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            topic = body[position : position + 16]
            position += 16
        else:
            topic, position = read_compact_string(body, position)
        partitions_count, position = read_compact_size(body, position)
        partitions: list[PartitionCommit] = []
        for _ in elements(partitions_count):
            index, offset, leader_epoch = _unpack_position(body, position)
            metadata, position = read_compact_nullable_string(body, position + 16)
            partitions.append((index, offset, leader_epoch, metadata or "", NOW_MS))
            position = skip_tagged_fields(body, position) if body[position] else position + 1
        position = skip_tagged_fields(body, position) if body[position] else position + 1
        topics.append((topic, partitions))
    commit = OffsetCommit(group_id, generation, member_id, group_instance_id, NO_RETENTION_MS, topics)
    return commit, skip_tagged_fields(body, position)


def write_response(
    version: int, topics: Sequence[TopicCommit], error_codes: Sequence[Sequence[int]]
) -> tuple[bytearray, int | None]:
    """Write a response body; return it and the position of its throttle time.

    :param topics: The topics of the request.
    :param error_codes: Of each partition of each topic.
    """
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    write_count = count_writer(is_flexible)
    pack_result = _pack_flexible_result if is_flexible else _pack_result
    has_throttle_time = version >= FIRST_VERSION_WITH_THROTTLE_TIME
    out = bytearray(4 if has_throttle_time else 0)
    write_count(out, len(topics))
    for (topic, partitions), codes in zip(topics, error_codes, strict=True):
        write_topic(out, topic, is_flexible)
        write_count(out, len(partitions))
        for partition, code in zip(partitions, codes, strict=True):
            out += pack_result(partition[0], code)
        if is_flexible:
            out.append(0)  # no tagged fields
    if is_flexible:
        out.append(0)
    return out, 0 if has_throttle_time else None
