"""Reads Heartbeat requests and writes their responses in place, without message objects.

The generated messages (`wire/messages/heartbeat.py`) describe the same bytes; tests compare both.
"""

import struct

from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.wire.in_place import read_body
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.primitives import (
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tagged_fields,
)

FIRST_FLEXIBLE_VERSION = HeartbeatRequest.FLEXIBLE.first
FIRST_VERSION_WITH_GROUP_INSTANCE = 3
FIRST_VERSION_WITH_THROTTLE_TIME = 1

_unpack_int32 = struct.Struct(">i").unpack_from
_pack_v0 = struct.Struct(">h").pack  # error code
_pack_v1 = struct.Struct(">4xh").pack  # no throttle time, error code
_pack_v4 = struct.Struct(">4xhx").pack  # the same, no tagged fields


def read_request(body: bytes, version: int) -> Heartbeat:
    """Read a request.

    :raises DecodeError: If the bytes are cut short or contain something that the protocol forbids.
    """
    read = _read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain
    return read_body(HeartbeatRequest, version, read, body, 0)


def _read_plain(body: bytes, position: int, version: int) -> tuple[Heartbeat, int]:
    group_id, position = read_string(body, position)
    generation_id = _unpack_int32(body, position)[0]
    member_id, position = read_string(body, position + 4)
    group_instance_id = None
    if version >= FIRST_VERSION_WITH_GROUP_INSTANCE:
        group_instance_id, position = read_nullable_string(body, position)
    return Heartbeat(group_id, generation_id, member_id, group_instance_id), position


def _read_flexible(body: bytes, position: int, _version: int) -> tuple[Heartbeat, int]:
    group_id, position = read_compact_string(body, position)
    generation_id = _unpack_int32(body, position)[0]
    member_id, position = read_compact_string(body, position + 4)
    group_instance_id, position = read_compact_nullable_string(body, position)
    beat = Heartbeat(group_id, generation_id, member_id, group_instance_id)
    return beat, skip_tagged_fields(body, position)


def write_response(version: int, error_code: int) -> tuple[bytes, int | None]:
    """Write a response body; return it and the position of its throttle time."""
    if version >= FIRST_FLEXIBLE_VERSION:
        return _pack_v4(error_code), 0
    if version >= FIRST_VERSION_WITH_THROTTLE_TIME:
        return _pack_v1(error_code), 0
    return _pack_v0(error_code), None
