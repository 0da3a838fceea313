"""Reads ListOffsets requests and writes their responses in place, without message objects.

The generated messages (`wire/messages/list_offsets.py`) describe the same bytes; tests compare both.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from barnabas.wire.in_place import count_writer, elements, read_body, write_topic
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.primitives import (
    read_compact_size,
    read_compact_string,
    read_size,
    read_string,
    skip_tagged_fields,
)

FIRST_VERSION_WITH_TIMEOUT = 10
FIRST_FLEXIBLE_VERSION = ListOffsetsRequest.FLEXIBLE.first
FIRST_VERSION_WITH_LEADER_EPOCH = 4
FIRST_VERSION_WITH_ISOLATION_LEVEL = FIRST_VERSION_WITH_THROTTLE_TIME = 2

_NO_EPOCH = -1

#: A partition's index, the leader epoch that the client knows, and a timestamp or a marker.
PartitionRequest: TypeAlias = tuple[int, int, int]
TopicRequest: TypeAlias = tuple[str, Sequence[PartitionRequest]]
#: A partition's index, error code, timestamp, offset and leader epoch.
PartitionOffset: TypeAlias = tuple[int, int, int, int, int]
TopicOffsets: TypeAlias = tuple[str, Sequence[PartitionOffset]]

_unpack_start_v1 = struct.Struct(">i").unpack_from  # replica id
_unpack_start_v2 = struct.Struct(">ib").unpack_from  # the same, isolation level
_unpack_partition_v1 = struct.Struct(">iq").unpack_from
_unpack_partition_v4 = struct.Struct(">iiq").unpack_from
_pack_offset_v1 = struct.Struct(">ihqq").pack
_pack_offset_v4 = struct.Struct(">ihqqi").pack
_pack_offset_v6 = struct.Struct(">ihqqix").pack  # no tagged fields


class ListOffsetsData(NamedTuple):
    """A ListOffsets request without its timeout."""

    replica_id: int
    isolation_level: int
    topics: Sequence[TopicRequest]


def read_request(body: bytes, version: int) -> ListOffsetsData:
    """Read a request.

    :raises DecodeError: If the bytes are cut short or contain something that the protocol forbids.
    """
    read = _read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain
    return read_body(ListOffsetsRequest, version, read, body, 0)


def _read_plain(body: bytes, position: int, version: int) -> tuple[ListOffsetsData, int]:
    isolation_level = Isolation.READ_UNCOMMITTED.value
    if version >= FIRST_VERSION_WITH_ISOLATION_LEVEL:
        replica_id, isolation_level = _unpack_start_v2(body, position)
        position += 5
    else:
        replica_id = _unpack_start_v1(body, position)[0]
        position += 4
    topics_count, position = read_size(body, position)
    topics: list[TopicRequest] = []
    for _ in elements(topics_count):
        name, position = read_string(body, position)
        partitions_count, position = read_size(body, position)
        partitions: list[PartitionRequest] = []
        for _ in elements(partitions_count):
            if version >= FIRST_VERSION_WITH_LEADER_EPOCH:
                partitions.append(_unpack_partition_v4(body, position))
                position += 16
            else:
                index, timestamp = _unpack_partition_v1(body, position)
                partitions.append((index, _NO_EPOCH, timestamp))
                position += 12
        topics.append((name, partitions))
    return ListOffsetsData(replica_id, isolation_level, topics), position


def _read_flexible(body: bytes, position: int, version: int) -> tuple[ListOffsetsData, int]:
    replica_id, isolation_level = _unpack_start_v2(body, position)
    topics_count, position = read_compact_size(body, position + 5)
    topics: list[TopicRequest] = []
    for _ in elements(topics_count):
        name, position = read_compact_string(body, position)
        partitions_count, position = read_compact_size(body, position)
        partitions: list[PartitionRequest] = []
        for _ in elements(partitions_count):
            partitions.append(_unpack_partition_v4(body, position))
            position += 16
            position = skip_tagged_fields(body, position) if body[position] else position + 1
        position = skip_tagged_fields(body, position) if body[position] else position + 1
        topics.append((name, partitions))
    if version >= FIRST_VERSION_WITH_TIMEOUT:
        position += 4
    return ListOffsetsData(replica_id, isolation_level, topics), skip_tagged_fields(body, position)


def data_of(request: ListOffsetsRequest) -> ListOffsetsData:
    """Return the data of a decoded request."""
    topics = [
        (
            topic.name,
            [
                (partition.partition_index, partition.current_leader_epoch, partition.timestamp)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsData(request.replica_id, request.isolation_level, topics)


def write_response(version: int, topics: Sequence[TopicOffsets]) -> tuple[bytearray, int | None]:
    """Write a response body; return it and the position of its throttle time."""
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    write_count = count_writer(is_flexible)
    has_throttle_time = version >= FIRST_VERSION_WITH_THROTTLE_TIME
    out = bytearray(4 if has_throttle_time else 0)
    write_count(out, len(topics))
    for name, partitions in topics:
        write_topic(out, name, is_flexible)
        write_count(out, len(partitions))
        for offset in partitions:
            if is_flexible:
                out += _pack_offset_v6(*offset)
            elif version >= FIRST_VERSION_WITH_LEADER_EPOCH:
                out += _pack_offset_v4(*offset)
            else:
                out += _pack_offset_v1(*offset[:-1])
        if is_flexible:
            out.append(0)  # no tagged fields
    if is_flexible:
        out.append(0)
    return out, 0 if has_throttle_time else None
