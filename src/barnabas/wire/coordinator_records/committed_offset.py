"""Encodes and decodes records of committed offsets by hand: OffsetCommit and its legacy form.

These are most of `__consumer_offsets`: a million of them may be loaded at a start, thousands written in a second. They
stay encoded until they are needed. `serde` reads and writes the same bytes.
"""

from struct import Struct
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.base.ids import ZERO_UUID
from barnabas.wire import codec, primitives
from barnabas.wire.codec import DecodeError
from barnabas.wire.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey
from barnabas.wire.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue

#: Record types, the first two bytes of a key. Values of the legacy type are version 0 of OffsetCommit's.
RECORD_TYPES = frozenset({LegacyOffsetCommitKey.API_KEY, OffsetCommitKey.API_KEY})

NEVER_MS = -1
#: The version written by default, and the one for an offset with its own expiry, the only one with a field for it.
WRITTEN_VERSION, EXPIRING_VERSION = 4, 1
assert OffsetCommitValue.VERSIONS.last == WRITTEN_VERSION

_TYPE_AND_SIZE = Struct(">hh")
_SIZE = Struct(">h")
_PARTITION = Struct(">i")
#: Size of the partition index, the end of a key. What is before it in `encode_partition` is `encode_topic`.
INDEX_BYTES = _PARTITION.size
_HEAD = Struct(">hqi")  # version, offset, leader epoch
_TIMESTAMP = Struct(">q")
_WRITTEN = _SIZE.pack(WRITTEN_VERSION)
_NO_TAGS = b"\0"
_TOPIC_ID_TAG = b"\1\0\x10"  # one tagged field, number 0, of 16 bytes
#: Larger sizes take more than one byte as compact sizes, which are one more than the size.
_SHORT_BYTES_MAX = 126


class CommittedOffset(NamedTuple):
    """The committed offset of one partition."""

    offset: int
    leader_epoch: int  #: of the record before `offset`; -1 if unknown
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NEVER_MS  #: NEVER_MS: offsets.retention.minutes applies
    topic_id: bytes = ZERO_UUID  #: ZERO_UUID if unknown


def encode_group(group_id: str) -> bytes:
    """Return the prefix of the keys of a group's offsets."""
    encoded = group_id.encode()
    return _TYPE_AND_SIZE.pack(OffsetCommitKey.API_KEY, len(encoded)) + encoded


def encode_topic(topic: str) -> bytes:
    """Return the part of a key with the topic."""
    encoded = topic.encode()
    return _SIZE.pack(len(encoded)) + encoded


def encode_partition(topic: str, index: int) -> bytes:
    """Return the end of a key: topic and partition index."""
    return encode_topic(topic) + encode_index(index)


def encode_index(index: int) -> bytes:
    """Return the end of a key: the partition index behind the topic."""
    return _PARTITION.pack(index)


def is_key(key: bytes) -> bool:
    """Whether the lengths within a key of one of these types are valid."""
    topic_at = 4 + int.from_bytes(key[2:4])
    return len(key) == topic_at + 6 + int.from_bytes(key[topic_at : topic_at + 2])


def split_key(key: bytes) -> tuple[str, bytes]:
    """Return the group of a key, and the rest for `decode_partition`."""
    end = 4 + int.from_bytes(key[2:4])
    return key[4:end].decode("utf-8", "replace"), key[end:]


def decode_partition(key_end: bytes) -> tuple[str, int]:
    """Return topic and index at the end of a key."""
    topic = key_end[2:-INDEX_BYTES].decode("utf-8", "replace")
    return topic, int.from_bytes(key_end[-INDEX_BYTES:], signed=True)


def encode_value(committed: CommittedOffset) -> bytes:
    """Return the value of an offset's record, as Apache Kafka writes it."""
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id = committed
    if expire_timestamp_ms != NEVER_MS:
        return _encode_expiring(committed)
    return _HEAD.pack(WRITTEN_VERSION, offset, leader_epoch) + _encode_rest(
        metadata, commit_timestamp_ms, topic_id
    )


def _encode_rest(metadata: str, commit_timestamp_ms: int, topic_id: bytes) -> bytes:
    text = metadata.encode()
    if len(text) <= _SHORT_BYTES_MAX:
        size: Buffer = bytes((len(text) + 1,))
    else:
        size = bytearray()
        primitives.write_compact_size(size, len(text))
    tags = _NO_TAGS if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id
    return b"".join((size, text, _TIMESTAMP.pack(commit_timestamp_ms), tags))


def _encode_expiring(committed: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=committed.offset,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    out = bytearray(_SIZE.pack(EXPIRING_VERSION))
    return bytes(codec.encode(value, EXPIRING_VERSION, out))


def decode_value(value: bytes) -> CommittedOffset:
    """Decode a value of any version.

    :raises DecodeError: When it is malformed.
    """
    try:
        return _decode_written(value) or _decode_other(value)
    except UnicodeDecodeError as error:
        message = f"The text committed with an offset is not UTF-8: {error}"
        raise DecodeError(message) from error


def _decode_written(value: bytes) -> CommittedOffset | None:
    """Decode a value of the usual form: WRITTEN_VERSION, short metadata, no tagged field but the topic id."""
    if value[:2] != _WRITTEN or len(value) < _HEAD.size + 1:
        return None
    _, offset, leader_epoch = _HEAD.unpack_from(value)
    compact_size = value[_HEAD.size]
    if not 0 < compact_size <= _SHORT_BYTES_MAX + 1:
        return None
    start = _HEAD.size + 1
    end = start + compact_size - 1
    tags = value[end + _TIMESTAMP.size :]
    if tags == _NO_TAGS:
        topic_id = ZERO_UUID
    elif len(tags) == len(_TOPIC_ID_TAG) + len(ZERO_UUID) and tags.startswith(_TOPIC_ID_TAG):
        topic_id = tags[len(_TOPIC_ID_TAG) :]
    else:
        return None
    (timestamp_ms,) = _TIMESTAMP.unpack_from(value, end)
    return CommittedOffset(offset, leader_epoch, value[start:end].decode(), timestamp_ms, NEVER_MS, topic_id)


def _decode_other(value: bytes) -> CommittedOffset:
    version = int.from_bytes(value[: _SIZE.size], signed=True)
    if len(value) < _SIZE.size or version not in OffsetCommitValue.VERSIONS:
        message = f"An offset's value begins with {value[: _SIZE.size]!r}, which is not a known version."
        raise DecodeError(message)
    decoded = codec.decode(OffsetCommitValue, version, value, _SIZE.size)
    return CommittedOffset(
        decoded.offset,
        decoded.leader_epoch,
        decoded.metadata,
        decoded.commit_timestamp,
        decoded.expire_timestamp,
        decoded.topic_id,
    )
