"""Reads Fetch requests and writes their responses in place, without message objects.

The generated messages (`wire/messages/fetch.py`) describe the same bytes; tests compare both.
"""

import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from barnabas.api.context import EncodedResponse
from barnabas.api.data.leader_hints import NodeEndpoint, write_endpoints
from barnabas.base.buffers import Buffer
from barnabas.base.ids import ZERO_UUID
from barnabas.replication.fetch_sessions import FINAL_EPOCH, INVALID_SESSION_ID
from barnabas.replication.fetch_targets import FetchData, FetchedPartition, FetchTarget, Key
from barnabas.replication.partition import NO_EPOCH
from barnabas.wire.in_place import count_writer, elements, read_body, write_topic
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.primitives import (
    read_compact_size,
    read_compact_string,
    read_size,
    read_string,
    read_uuid,
    write_compact_size,
)

FIRST_FLEXIBLE_VERSION = FetchRequest.FLEXIBLE.first
FIRST_VERSION_WITH_LEADER_HINTS = 16
FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_RACK = 11
FIRST_VERSION_WITH_LEADER_EPOCH = 9
FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_WITH_LOG_START = 5


_NO_REPLICA_ID = -1

#: Maximum size of the records of a response that are copied into it; larger ones are sent uncopied.
COPIED_RECORDS_BYTES_MAX = 16 << 10

#: A topic's name, or its id from version 13 on, and the results of its partitions.
TopicResult: TypeAlias = tuple[str | bytes, list[FetchedPartition]]
_TopicReader: TypeAlias = Callable[[bytes, int], tuple[str | bytes, int]]

#: The start of a request: replica id, max wait, min and max bytes, isolation level, session id and epoch.
_START_V4 = struct.Struct(">iiiib")
_START_V7 = struct.Struct(">iiiibii")
_START_V15 = struct.Struct(">iiibii")
#: A partition: index, leader epoch, offset, last fetched epoch, max bytes; the log start offset is skipped.
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iq8xi")
_PARTITION_V9 = struct.Struct(">iiq8xi")
_PARTITION_V12 = struct.Struct(">iiqi8xi")

_pack_start_v4 = struct.Struct(">4x").pack  # no throttle time
_pack_start_v7 = struct.Struct(">4xhi").pack  # the same, error code, session id
#: A partition's index, error code, high watermark, last stable offset and log start offset.
_pack_partition_v4 = struct.Struct(">ihqq").pack
_pack_partition_v5 = struct.Struct(">ihqqq").pack
_pack_aborted = struct.Struct(">qq").pack  # producer id, first offset
_pack_flexible_aborted = struct.Struct(">qqx").pack
_pack_int32 = struct.Struct(">i").pack
#: The tagged fields of a partition whose log diverges: one field, number 0, of 13 bytes: epoch, end offset, no fields.
_pack_diverging_epoch = struct.Struct(">3Biqx").pack
#: Its tagged field 1, of 9 bytes: leader id, leader epoch, no fields.
_pack_leader_hint = struct.Struct(">3Biix").pack


class _HasTaggedFields(Exception):
    """The request has tagged fields, which only the message class reads."""


def read_request(body: bytes, version: int) -> FetchData | None:
    """Read a request, whether or not it has a replica id; return None for one with tagged fields.

    :raises DecodeError: If the bytes are cut short or contain something that the protocol forbids.
    """
    read = _read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain
    try:
        return read_body(FetchRequest, version, read, body, 0)
    except _HasTaggedFields:
        return None


def _read_plain(body: bytes, position: int, version: int) -> tuple[FetchData, int]:
    has_sessions = version >= FIRST_VERSION_WITH_SESSIONS
    layout = _START_V7 if has_sessions else _START_V4
    replica_id, *start = layout.unpack_from(body, position)
    if not has_sessions:
        start += (INVALID_SESSION_ID, FINAL_EPOCH)
    topics_count, position = read_size(body, position + layout.size)
    requested: list[tuple[Key, FetchTarget]] = []
    for _ in elements(topics_count):
        name, position = read_string(body, position)
        position = _read_plain_partitions(body, position, version, name, requested)
    forgotten: list[Key] = []
    if has_sessions:
        topics_count, position = read_size(body, position)
        for _ in elements(topics_count):
            name, position = read_string(body, position)
            count, position = read_size(body, position)
            position = _read_forgotten(body, position, count, name, forgotten)
    rack = ""
    if version >= FIRST_VERSION_WITH_RACK:
        rack, position = read_string(body, position)
    return _data(replica_id, start, requested, forgotten, rack), position


def _read_plain_partitions(
    body: bytes, position: int, version: int, name: str, requested: list[tuple[Key, FetchTarget]]
) -> int:
    count, position = read_size(body, position)
    leader_epoch = NO_EPOCH
    for _ in elements(count):
        if version >= FIRST_VERSION_WITH_LEADER_EPOCH:
            index, leader_epoch, offset, max_bytes = _PARTITION_V9.unpack_from(body, position)
            position += _PARTITION_V9.size
        else:
            layout = _PARTITION_V5 if version >= FIRST_VERSION_WITH_LOG_START else _PARTITION_V4
            index, offset, max_bytes = layout.unpack_from(body, position)
            position += layout.size
        target = FetchTarget(name, ZERO_UUID, index, offset, max_bytes, leader_epoch, NO_EPOCH, False)
        requested.append(((name, index), target))
    return position


def _read_flexible(body: bytes, position: int, version: int) -> tuple[FetchData, int]:
    replica_id = _NO_REPLICA_ID
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        start = list(_START_V15.unpack_from(body, position))
        position += _START_V15.size
    else:
        replica_id, *start = _START_V7.unpack_from(body, position)
        position += _START_V7.size
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    read_topic: _TopicReader = read_uuid if by_id else read_compact_string
    topics_count, position = read_compact_size(body, position)
    requested: list[tuple[Key, FetchTarget]] = []
    for _ in elements(topics_count):
        topic, position = read_topic(body, position)
        position = _read_flexible_partitions(body, position, topic, requested)
    topics_count, position = read_compact_size(body, position)
    forgotten: list[Key] = []
    for _ in elements(topics_count):
        topic, position = read_topic(body, position)
        count, position = read_compact_size(body, position)
        position = _read_forgotten(body, position, count, topic, forgotten)
        if body[position]:
            raise _HasTaggedFields
        position += 1
    rack, position = read_compact_string(body, position)
    if body[position]:
        raise _HasTaggedFields
    return _data(replica_id, start, requested, forgotten, rack), position + 1


def _read_flexible_partitions(
    body: bytes, position: int, topic: str | bytes, requested: list[tuple[Key, FetchTarget]]
) -> int:
    by_id = isinstance(topic, bytes)
    name, topic_id = ("", topic) if isinstance(topic, bytes) else (topic, ZERO_UUID)
    count, position = read_compact_size(body, position)
    for _ in elements(count):
        index, leader_epoch, offset, last_epoch, max_bytes = _PARTITION_V12.unpack_from(body, position)
        position += _PARTITION_V12.size
        target = FetchTarget(name, topic_id, index, offset, max_bytes, leader_epoch, last_epoch, by_id)
        requested.append(((topic, index), target))
        if body[position]:
            raise _HasTaggedFields
        position += 1
    if body[position]:
        raise _HasTaggedFields
    return position + 1


def _read_forgotten(body: bytes, position: int, count: int, topic: str | bytes, forgotten: list[Key]) -> int:
    indexes = struct.unpack_from(f">{len(elements(count))}i", body, position)
    forgotten += [(topic, index) for index in indexes]
    return position + 4 * count


def _data(
    replica_id: int,
    start: list[int],
    requested: list[tuple[Key, FetchTarget]],
    forgotten: list[Key],
    rack: str,
) -> FetchData:
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = start
    return FetchData(
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        requested,
        forgotten,
        has_replica_id=replica_id >= 0,
        rack=rack,
    )


def data_of(request: FetchRequest, version: int) -> FetchData:
    """Return the data of a decoded request."""
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    requested: list[tuple[Key, FetchTarget]] = []
    for topic in request.topics:
        key = topic.topic_id if by_id else topic.topic
        for partition in topic.partitions:
            target = FetchTarget(
                topic.topic,
                topic.topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                by_id,
            )
            requested.append(((key, partition.partition), target))
    forgotten: list[Key] = [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    start = [
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    ]
    replica_id = max(request.replica_id, request.replica_state.replica_id)
    return _data(replica_id, start, requested, forgotten, request.rack_id)


def write_response(
    version: int,
    session_id: int,
    topics: Sequence[TopicResult],
    error_code: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> EncodedResponse:
    """Write a response; large records are not copied.

    :param endpoints: Those of the leaders that errors name, for versions that have them.
    """
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    write_count = count_writer(is_flexible)
    write_partition = _write_flexible if is_flexible else _write_plain
    parts: list[Buffer] = []
    copied_bytes_left = COPIED_RECORDS_BYTES_MAX
    has_session = version >= FIRST_VERSION_WITH_SESSIONS
    out = bytearray(_pack_start_v7(error_code, session_id) if has_session else _pack_start_v4())
    write_count(out, len(topics))
    for topic, partitions in topics:
        write_topic(out, topic, is_flexible)
        write_count(out, len(partitions))
        for partition in partitions:
            write_partition(out, version, partition)
            records = partition.records
            copied_bytes_left -= len(records)
            if copied_bytes_left >= 0:
                out += records
            elif records:
                parts += (out, records)
                out = bytearray()
            if is_flexible:
                _write_tagged_fields(out, partition)
        if is_flexible:
            out.append(0)  # no tagged fields
    if is_flexible:
        write_endpoints(out, endpoints)
    if not parts:
        return EncodedResponse(out, 0)
    first, *rest = parts
    assert isinstance(first, bytearray)
    return EncodedResponse(first, 0, [*rest, out] if out else rest)


def _write_plain(out: bytearray, version: int, partition: FetchedPartition) -> None:
    """Write a partition up to its records."""
    start = (
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
    )
    if version >= FIRST_VERSION_WITH_LOG_START:
        out += _pack_partition_v5(*start, partition.log_start_offset)
    else:
        out += _pack_partition_v4(*start)
    aborted = partition.aborted_transactions
    out += _pack_int32(-1 if aborted is None else len(aborted))
    if aborted:
        out += b"".join([_pack_aborted(producer_id, first) for producer_id, first, _, _ in aborted])
    if version >= FIRST_VERSION_WITH_RACK:
        out += _pack_int32(partition.preferred_read_replica)
    out += _pack_int32(len(partition.records))


def _write_flexible(out: bytearray, _version: int, partition: FetchedPartition) -> None:
    """Write a partition up to its records."""
    out += _pack_partition_v5(
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
    )
    aborted = partition.aborted_transactions
    write_compact_size(out, None if aborted is None else len(aborted))
    if aborted:
        out += b"".join([_pack_flexible_aborted(producer_id, first) for producer_id, first, _, _ in aborted])
    out += _pack_int32(partition.preferred_read_replica)
    write_compact_size(out, len(partition.records))


def _write_tagged_fields(out: bytearray, partition: FetchedPartition) -> None:
    if partition.diverging_epoch is not None:
        out += _pack_diverging_epoch(1, 0, 13, *partition.diverging_epoch)
    elif partition.leader_hint is not None:
        out += _pack_leader_hint(1, 1, 9, *partition.leader_hint)
    else:
        out.append(0)
