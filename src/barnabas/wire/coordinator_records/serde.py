"""Encodes and decodes records of the coordinators' topics.

A key begins with the int16 type of its record and has one version. A value begins with its int16 version; a record
without a value is a tombstone. Source: Apache Kafka's record definitions, and KIP-848 for groups with the consumer
protocol.
"""

import struct
from typing import NamedTuple, TypeAlias

from barnabas.base.buffers import Buffer
from barnabas.wire import codec
from barnabas.wire.codec import DecodeError
from barnabas.wire.coordinator_records import committed_offset
from barnabas.wire.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from barnabas.wire.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.wire.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from barnabas.wire.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from barnabas.wire.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from barnabas.wire.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from barnabas.wire.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.coordinator_records.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from barnabas.wire.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from barnabas.wire.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from barnabas.wire.schema import Message

#: The only version of keys; their first two bytes are the record type.
KEY_VERSION = 0

_INT16 = struct.Struct(">h")

#: Versions that Apache Kafka 4.3.1 writes if they are not the newest: older brokers can read these.
_WRITTEN_VERSIONS: dict[type[Message], int] = {GroupMetadataValue: 3}

#: Only this version has a field for an offset's own expiry (OffsetCommit before v5).
_EXPIRING_OFFSET_VERSION = 1
_NEVER_MS = -1


class CoordinatorRecord(NamedTuple):
    """A key and its value; None is a tombstone."""

    key: Message
    value: Message | None
    value_version: int | None = None  #: the version to write; None for the one that Apache Kafka writes


class EncodedRecord(NamedTuple):
    """An encoded record, for types that coordinators hold by the million and decode when needed."""

    key: bytes
    value: bytes | None


AnyRecord: TypeAlias = CoordinatorRecord | EncodedRecord


class UnknownRecord(NamedTuple):
    """A record of an unknown type or version, written by a newer broker."""

    record_type: int
    value_version: int | None = None  #: None if the type is unknown


def encode_key(key: Message) -> bytes:
    """Return the record type and the key."""
    return bytes(codec.encode(key, KEY_VERSION, bytearray(_INT16.pack(key.API_KEY))))


def encode_value(value: Message, version: int | None = None) -> bytes:
    """Return the version and the value; by default in the version that Apache Kafka writes."""
    written = _written_version(value) if version is None else version
    return bytes(codec.encode(value, written, bytearray(_INT16.pack(written))))


def encode(
    key: Message, value: Message | None, value_version: int | None = None
) -> tuple[bytes, bytes | None]:
    """Return a record's key and value as bytes; None becomes a tombstone."""
    assert value is None or value.API_KEY == key.API_KEY, (key, value)
    return encode_key(key), None if value is None else encode_value(value, value_version)


def _written_version(value: Message) -> int:
    if type(value) is OffsetCommitValue and value.expire_timestamp != _NEVER_MS:
        return _EXPIRING_OFFSET_VERSION
    return _WRITTEN_VERSIONS.get(type(value), value.VERSIONS.last)


class Serde:
    """The record types of one topic."""

    def __init__(
        self, *kinds: tuple[type[Message], type[Message]], left_encoded: frozenset[int] = frozenset()
    ) -> None:
        """:param left_encoded: Record types that `load` does not decode."""
        self.kinds = kinds
        self._by_type = {key.API_KEY: (key, value) for key, value in kinds}
        assert len(self._by_type) == len(kinds), "two kinds of one type"
        #: prefix of keys of those types -> prefixes of values of known versions
        self._left_encoded = {
            _INT16.pack(number): frozenset(
                _INT16.pack(version) for version in _versions(self._by_type[number][1])
            )
            for number in left_encoded
        }

    def load(self, key: bytes, value: bytes | None) -> AnyRecord | UnknownRecord:
        """Decode as `decode`, but leave some types encoded.

        :raises DecodeError: When the bytes are incomplete or invalid.
        """
        versions = self._left_encoded.get(key[: _INT16.size])
        if versions is None:
            return self.decode(key, value)
        if not committed_offset.is_key(key):
            message = f"The key {key!r} is not a valid key of an offset record: its size does not match."
            raise DecodeError(message)
        if value is None or value[: _INT16.size] in versions:
            return EncodedRecord(key, value)
        return UnknownRecord(_leading_int16(key, "key"), _leading_int16(value, "value"))

    def decode(self, key: Buffer, value: Buffer | None) -> CoordinatorRecord | UnknownRecord:
        """Decode a record of any broker version. Byte strings are slices of the input.

        :raises DecodeError: When the bytes are incomplete or invalid.
        """
        record_type = _leading_int16(key, "key")
        kind = self._by_type.get(record_type)
        if kind is None:
            return UnknownRecord(record_type)
        key_kind, value_kind = kind
        decoded_key = codec.decode(key_kind, KEY_VERSION, key, _INT16.size)
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        version = _leading_int16(value, "value")
        if version not in value_kind.VERSIONS:
            return UnknownRecord(record_type, version)
        return CoordinatorRecord(decoded_key, codec.decode(value_kind, version, value, _INT16.size))


def _versions(kind: type[Message]) -> range:
    return range(kind.VERSIONS.first, kind.VERSIONS.last + 1)


def _leading_int16(buffer: Buffer, what: str) -> int:
    if len(buffer) < _INT16.size:
        message = f"A coordinator record's {what} has {len(buffer)} bytes: its first two are its version."
        raise DecodeError(message)
    number: int
    (number,) = _INT16.unpack_from(buffer)
    return number


#: Records of `__consumer_offsets`.
GROUP_RECORDS = Serde(
    (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    left_encoded=committed_offset.RECORD_TYPES,
)

#: Records of `__transaction_state`.
TRANSACTION_RECORDS = Serde((TransactionLogKey, TransactionLogValue))
