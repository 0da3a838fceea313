"""Reads Produce requests and writes their responses in place, without message objects.

The generated messages (`wire/messages/produce.py`) describe the same bytes; tests compare both.
"""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.api.data.leader_hints import NodeEndpoint, write_endpoints
from barnabas.wire.codec import part_writer
from barnabas.wire.in_place import count_writer, elements, read_body, write_topic
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from barnabas.wire.primitives import (
    read_compact_nullable_string,
    read_compact_size,
    read_compact_string,
    read_nullable_string,
    read_size,
    read_string,
    read_uuid,
    read_uvarint,
    skip_tagged_fields,
)

FIRST_FLEXIBLE_VERSION = ProduceRequest.FLEXIBLE.first
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LOG_START = 5
FIRST_VERSION_WITH_RECORD_ERRORS = 8
FIRST_VERSION_WITH_LEADER_HINTS = 10

#: A partition's index and its record batch, a view of the frame; None for null.
PartitionData: TypeAlias = tuple[int, memoryview | None]
#: A topic's name, or its id from version 13 on, and its partitions.
TopicData: TypeAlias = tuple[str | bytes, list[PartitionData]]

#: index, base offset, append time, log start offset of a successful append; an error is a message struct.
Appended: TypeAlias = tuple[int, int, int, int]
PartitionResult: TypeAlias = Appended | PartitionProduceResponse
TopicResults: TypeAlias = tuple[str | bytes, list[PartitionResult]]

_unpack_acks_timeout = struct.Struct(">hi").unpack_from
_unpack_int32 = struct.Struct(">i").unpack_from
_unpack_two_int32 = struct.Struct(">ii").unpack_from

#: A successful partition: index, no error, base offset, append time, and by version log start offset, an empty list of
#: record errors, a null message, no tagged fields.
_pack_v3 = struct.Struct(">i2xqq").pack
_pack_v5 = struct.Struct(">i2xqqq").pack
_pack_v8 = struct.Struct(">i2xqqq4xh").pack
_pack_v9 = struct.Struct(">i2xqqqB2x").pack

#: The end of a response: throttle time 0, no tagged fields.
_END, _END_FLEXIBLE = bytes(4), bytes(5)

#: Counts elements before they are read, and returns a range of that length.
_Take: TypeAlias = Callable[[int], range]
_TopicReader: TypeAlias = Callable[[memoryview, int], tuple[str | bytes, int]]


class ProduceData(NamedTuple):
    """A Produce request whose records are views of its frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicData]


def read_request(frame: memoryview, position: int, version: int, elements_max: int) -> ProduceData:
    """Read the body that begins at `position`.

    :param elements_max: Maximum number of topics and partitions.
    :raises DecodeError: If the bytes are cut short or contain something that the protocol forbids.
    """
    read = _read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain
    return read_body(ProduceRequest, version, read, frame, position, _Allowance(elements_max).take)


class _Allowance:
    """The number of topics and partitions that a request may still name."""

    def __init__(self, elements_max: int) -> None:
        self._elements_max = self._left = elements_max

    def take(self, count: int) -> range:
        """Count elements before they are read."""
        self._left -= count
        if self._left < 0:
            message = f"it has more than {self._elements_max} elements"
            raise ValueError(message)
        return elements(count)


def _read_plain(
    frame: memoryview, position: int, _version: int, count_elements: _Take
) -> tuple[ProduceData, int]:
    """Read versions 3 to 8. A slice beyond the end is short: the caller compares the returned position."""
    transactional_id, position = read_nullable_string(frame, position)
    acks, timeout_ms = _unpack_acks_timeout(frame, position)
    topics_count, position = read_size(frame, position + 6)
    topics: list[TopicData] = []
    for _ in count_elements(topics_count):
        name, position = read_string(frame, position)
        partitions_count, position = read_size(frame, position)
        partitions: list[PartitionData] = []
        for _ in count_elements(partitions_count):
            index, size_bytes = _unpack_two_int32(frame, position)
            start = position + 8
            position = start + size_bytes if size_bytes > 0 else start
            partitions.append((index, frame[start:position] if size_bytes >= 0 else None))
        topics.append((name, partitions))
    return ProduceData(transactional_id, acks, timeout_ms, topics), position


def _read_flexible(
    frame: memoryview, position: int, version: int, count_elements: _Take
) -> tuple[ProduceData, int]:
    """Read versions 9 to 13 (KIP-482). A slice beyond the end is short: the caller compares the returned position."""
    transactional_id = None
    if frame[position]:
        transactional_id, position = read_compact_nullable_string(frame, position)
    else:
        position += 1
    acks, timeout_ms = _unpack_acks_timeout(frame, position)
    topics_count, position = read_compact_size(frame, position + 6)
    read_topic: _TopicReader = read_uuid if version >= FIRST_VERSION_WITH_TOPIC_IDS else read_compact_string
    topics: list[TopicData] = []
    for _ in count_elements(topics_count):
        topic, position = read_topic(frame, position)
        partitions_count, position = read_compact_size(frame, position)
        partitions: list[PartitionData] = []
        for _ in count_elements(partitions_count):
            index = _unpack_int32(frame, position)[0]
            size, start = read_uvarint(frame, position + 4)
            position = start + size - 1 if size else start
            partitions.append((index, frame[start:position] if size else None))
            position = skip_tagged_fields(frame, position) if frame[position] else position + 1
        position = skip_tagged_fields(frame, position) if frame[position] else position + 1
        topics.append((topic, partitions))
    position = skip_tagged_fields(frame, position) if frame[position] else position + 1
    return ProduceData(transactional_id, acks, timeout_ms, topics), position


def write_response(
    version: int, results: list[TopicResults], endpoints: Sequence[NodeEndpoint] = ()
) -> tuple[bytearray, int]:
    """Write a response body; return it and the position of its throttle time.

    :param endpoints: Those of the leaders that errors name, for versions that have them.
    """
    out = bytearray()
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    write_count = count_writer(is_flexible)
    write_count(out, len(results))
    for topic, partitions in results:
        write_topic(out, topic, is_flexible)
        write_count(out, len(partitions))
        for result in partitions:
            if not isinstance(result, tuple):
                part_writer(PartitionProduceResponse, ProduceResponse, version)(result, out, [])
            elif is_flexible:
                out += _pack_v9(*result, 1)
            elif version >= FIRST_VERSION_WITH_RECORD_ERRORS:
                out += _pack_v8(*result, -1)
            elif version >= FIRST_VERSION_WITH_LOG_START:
                out += _pack_v5(*result)
            else:
                out += _pack_v3(*result[:-1])
        if is_flexible:
            out.append(0)  # no tagged fields
    throttle_position = len(out)
    if endpoints:
        out += _END
        write_endpoints(out, endpoints)
    else:
        out += _END_FLEXIBLE if is_flexible else _END
    return out, throttle_position
