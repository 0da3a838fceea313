import random
from contextlib import suppress

import pytest

from barnabas.wire.codec import DecodeError
from barnabas.wire.coordinator_records import serde
from barnabas.wire.coordinator_records.consumer_group_member_metadata import ConsumerGroupMemberMetadataValue
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from barnabas.wire.coordinator_records.serde import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecord,
    Serde,
    UnknownRecord,
)
from barnabas.wire.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from barnabas.wire.schema import Message
from support.random_structs import random_struct

KINDS = [
    pytest.param(topic, *kind, id=kind[0].__name__.removesuffix("Key"))
    for topic in (GROUP_RECORDS, TRANSACTION_RECORDS)
    for kind in topic.kinds
]

OFFSET_KEY = OffsetCommitKey(group="readers", topic="orders", partition=3)
OFFSET = OffsetCommitValue(offset=42, leader_epoch=7, metadata="m", commit_timestamp=1000)


@pytest.mark.parametrize(("topic", "key_kind", "value_kind"), KINDS)
def test_every_record_of_every_version_round_trips(
    topic: Serde, key_kind: type[Message], value_kind: type[Message]
) -> None:
    rng = random.Random(key_kind.__name__)
    for version in range(value_kind.VERSIONS.last + 1):
        for _ in range(30):
            key, value = random_struct(key_kind, 0, rng), random_struct(value_kind, version, rng)
            written = serde.encode(key, value, version)
            assert topic.decode(*written) == CoordinatorRecord(key, value)
            assert topic.decode(*map(memoryview, written)) == CoordinatorRecord(key, value)


@pytest.mark.parametrize(("topic", "key_kind", "value_kind"), KINDS)
def test_a_tombstone_has_only_a_key(topic: Serde, key_kind: type[Message], value_kind: type[Message]) -> None:
    key = random_struct(key_kind, 0, random.Random(1))
    key_bytes, value_bytes = serde.encode(key, None)
    assert value_bytes is None
    assert topic.decode(key_bytes, None) == CoordinatorRecord(key, None)


@pytest.mark.parametrize(("topic", "key_kind", "value_kind"), KINDS)
def test_truncated_records_raise_only_decode_errors(
    topic: Serde, key_kind: type[Message], value_kind: type[Message]
) -> None:
    rng = random.Random(2)
    written = serde.encode(
        random_struct(key_kind, 0, rng), random_struct(value_kind, 0, rng), value_version=0
    )
    key_bytes, value_bytes = written[0], written[1] or b""
    for size in range(len(key_bytes)):
        with pytest.raises(DecodeError):
            topic.decode(key_bytes[:size], None)
    for size in range(len(value_bytes)):
        with suppress(DecodeError):  # truncation within tagged fields at the end may remove nothing
            topic.decode(key_bytes, value_bytes[:size])


def test_an_offset_is_encoded_in_the_newest_version() -> None:
    key_bytes, value_bytes = serde.encode(OFFSET_KEY, OFFSET)
    assert key_bytes == b"\0\1" + b"\0\7readers" + b"\0\6orders" + b"\0\0\0\3"
    assert (value_bytes or b"")[:2] == b"\0\4"


def test_an_offset_with_its_own_expiry_is_encoded_in_the_only_version_with_that_field() -> None:
    expiring = OffsetCommitValue(offset=42, metadata="m", commit_timestamp=1000, expire_timestamp=2000)
    written = serde.encode(OFFSET_KEY, expiring)
    assert (written[1] or b"")[:2] == b"\0\1"
    assert GROUP_RECORDS.decode(*written) == CoordinatorRecord(OFFSET_KEY, expiring)


def test_a_classic_group_is_encoded_in_the_version_that_older_brokers_support() -> None:
    assert serde.encode_value(GroupMetadataValue())[:2] == b"\0\3"
    assert serde.encode_value(TransactionLogValue())[:2] == b"\0\1"
    assert serde.encode_value(TransactionLogValue(), version=0)[:2] == b"\0\0"


def test_a_record_type_of_newer_brokers_is_reported_and_not_decoded() -> None:
    assert GROUP_RECORDS.decode(b"\0\x63whatever", b"\0\0") == UnknownRecord(99)
    assert TRANSACTION_RECORDS.decode(b"\0\1", None) == UnknownRecord(1)


def test_a_value_version_of_newer_brokers_is_reported_and_not_decoded() -> None:
    key_bytes = serde.encode_key(OFFSET_KEY)
    assert GROUP_RECORDS.decode(key_bytes, b"\0\5whatever") == UnknownRecord(1, 5)
    assert GROUP_RECORDS.decode(key_bytes, b"\xff\xff") == UnknownRecord(1, -1)


def test_tagged_fields_of_newer_brokers_are_skipped() -> None:
    key_bytes = serde.encode_key(TransactionLogKey("t"))
    value_bytes = serde.encode_value(TransactionLogValue(producer_id=5))
    assert value_bytes[-1] == 0
    extended = value_bytes[:-1] + b"\x01\x63\x02xy"
    assert TRANSACTION_RECORDS.decode(key_bytes, extended) == TRANSACTION_RECORDS.decode(
        key_bytes, value_bytes
    )


def test_a_consumer_members_missing_fields_are_encoded_as_null() -> None:
    """An omitted field would mean an empty one, so Apache Kafka writes null."""
    member = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert serde.encode_value(member)[-4:] == b"\1\0\1\0"
    assert serde.encode_value(ConsumerGroupMemberMetadataValue())[-1:] == b"\0"


@pytest.mark.parametrize("bad", [b"", b"\0"])
def test_a_key_that_is_too_short_for_its_type_is_malformed(bad: bytes) -> None:
    with pytest.raises(DecodeError, match=f"key has {len(bad)} bytes"):
        GROUP_RECORDS.decode(bad, None)
    with pytest.raises(DecodeError, match=f"value has {len(bad)} bytes"):
        GROUP_RECORDS.decode(serde.encode_key(GroupMetadataKey("g")), bad)


def test_a_key_rejects_a_value_of_another_record() -> None:
    with pytest.raises(AssertionError):
        serde.encode(OFFSET_KEY, GroupMetadataValue())
