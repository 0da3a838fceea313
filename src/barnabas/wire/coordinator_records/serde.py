"""Records of the coordinators' topics to bytes and back.

A key begins with the int16 type of its record and has one version. A value begins with the int16 version in which it is
written; a record without a value takes back what its key stands for. Source: Apache Kafka's record definitions, KIP-848
for those of groups with the consumer protocol.
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

#: The one version that keys have; their first two bytes are the type of the record.
KEY_VERSION = 0

_INT16 = struct.Struct(">h")

#: Versions that Apache Kafka 4.3.1 writes, where they are not the newest that it reads: older brokers read these.
_WRITTEN_VERSIONS: dict[type[Message], int] = {GroupMetadataValue: 3}

#: An offset that expires at a time of its own (OffsetCommit before v5) has that in this version alone.
_EXPIRING_OFFSET_VERSION = 1
_NEVER_MS = -1


class CoordinatorRecord(NamedTuple):
    """A key and what it stands for from now on; None for nothing more."""

    key: Message
    value: Message | None
    value_version: int | None = None  #: to be written in; None for the one that Apache Kafka writes


class EncodedRecord(NamedTuple):
    """A record as bytes: for those that coordinators hold by the million, and read only where needed."""

    key: bytes
    value: bytes | None


AnyRecord: TypeAlias = CoordinatorRecord | EncodedRecord


class UnknownRecord(NamedTuple):
    """A record that a newer broker wrote: of a type, or with a value in a version, that is not known here."""

    record_type: int
    value_version: int | None = None  #: None where the type is what is not known


def encode_key(key: Message) -> bytes:
    """The type of the record, and its key."""
    return bytes(codec.encode(key, KEY_VERSION, bytearray(_INT16.pack(key.API_KEY))))


def encode_value(value: Message, version: int | None = None) -> bytes:
    """The version, and the value in it; by default in the version that Apache Kafka writes."""
    written = _written_version(value) if version is None else version
    return bytes(codec.encode(value, written, bytearray(_INT16.pack(written))))


def encode(
    key: Message, value: Message | None, value_version: int | None = None
) -> tuple[bytes, bytes | None]:
    """A record's key and value as bytes; a value of None makes a tombstone."""
    assert value is None or value.API_KEY == key.API_KEY, (key, value)
    return encode_key(key), None if value is None else encode_value(value, value_version)


def _written_version(value: Message) -> int:
    if type(value) is OffsetCommitValue and value.expire_timestamp != _NEVER_MS:
        return _EXPIRING_OFFSET_VERSION
    return _WRITTEN_VERSIONS.get(type(value), value.VERSIONS.last)


class Serde:
    """The kinds of record that one topic holds."""

    def __init__(
        self, *kinds: tuple[type[Message], type[Message]], left_encoded: frozenset[int] = frozenset()
    ) -> None:
        """`left_encoded` has the types of record that `load` leaves as they are."""
        self.kinds = kinds
        self._by_type = {key.API_KEY: (key, value) for key, value in kinds}
        assert len(self._by_type) == len(kinds), "two kinds of one type"
        #: how the keys of those types begin -> how the values of their known versions begin
        self._left_encoded = {
            _INT16.pack(number): frozenset(
                _INT16.pack(version) for version in _versions(self._by_type[number][1])
            )
            for number in left_encoded
        }

    def load(self, key: bytes, value: bytes | None) -> AnyRecord | UnknownRecord:
        """A record as its coordinator takes it over: as `decode`, but for the types that are left encoded.

        :raises DecodeError: When the bytes are cut short or hold something that the format forbids.
        """
        versions = self._left_encoded.get(key[: _INT16.size])
        if versions is None:
            return self.decode(key, value)
        if not committed_offset.is_key(key):
            message = f"The key {key!r} of an offset's record has a size of its own."
            raise DecodeError(message)
        if value is None or value[: _INT16.size] in versions:
            return EncodedRecord(key, value)
        return UnknownRecord(_leading_int16(key, "key"), _leading_int16(value, "value"))

    def decode(self, key: Buffer, value: Buffer | None) -> CoordinatorRecord | UnknownRecord:
        """A record as it was written by this broker, an older or a newer one. Byte strings are slices of what is given.

        :raises DecodeError: When the bytes are cut short or hold something that the format forbids.
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
        message = f"A coordinator record's {what} has {len(buffer)} bytes: its first two tell how to read it."
        raise DecodeError(message)
    number: int
    (number,) = _INT16.unpack_from(buffer)
    return number


#: What `__consumer_offsets` holds.
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

#: What `__transaction_state` holds.
TRANSACTION_RECORDS = Serde((TransactionLogKey, TransactionLogValue))
