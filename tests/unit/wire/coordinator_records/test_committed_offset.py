"""The hand-written codec of committed offsets is equivalent to `serde`."""

import random
from contextlib import suppress

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.codec import DecodeError
from barnabas.wire.coordinator_records import serde
from barnabas.wire.coordinator_records.committed_offset import (
    CommittedOffset,
    decode_partition,
    decode_value,
    encode_group,
    encode_partition,
    encode_topic,
    encode_value,
    split_key,
)
from barnabas.wire.coordinator_records.legacy_offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from barnabas.wire.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, EncodedRecord, UnknownRecord
from support.random_structs import random_struct

RNG = random.Random(4)


def as_committed(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


@pytest.mark.parametrize("kind", [OffsetCommitKey, LegacyOffsetCommitKey])
def test_keys_are_decoded_as_by_serde(kind: type[OffsetCommitKey]) -> None:
    for _ in range(200):
        key = random_struct(kind, 0, RNG)
        group_id, key_end = split_key(serde.encode_key(key))
        assert group_id == key.group
        assert decode_partition(key_end) == (key.topic, key.partition)


def test_keys_are_encoded_as_by_serde() -> None:
    for _ in range(200):
        key = random_struct(OffsetCommitKey, 0, RNG)
        key_end = encode_partition(key.topic, key.partition)
        assert encode_group(key.group) + key_end == serde.encode_key(key)
        assert key_end.startswith(encode_topic(key.topic))


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_values_of_every_version_are_decoded_as_by_serde(version: int) -> None:
    for _ in range(300):
        value = random_struct(OffsetCommitValue, version, RNG)
        assert decode_value(serde.encode_value(value, version)) == as_committed(value)


def test_values_of_the_legacy_form_are_decoded() -> None:
    value = LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    assert decode_value(serde.encode_value(value)) == CommittedOffset(5, -1, "m", 9)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4096, 20_000])
@pytest.mark.parametrize("topic_id", [ZERO_UUID, bytes(range(16))])
@pytest.mark.parametrize("expire_ms", [-1, 0, 77])
def test_values_are_encoded_as_by_serde(size: int, topic_id: bytes, expire_ms: int) -> None:
    committed = CommittedOffset(2**40, 3, "ü" * (size // 2) + "x" * (size % 2), 5, expire_ms, topic_id)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=3,
        metadata=committed.metadata,
        commit_timestamp=5,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )
    written = encode_value(committed)
    assert written == serde.encode_value(value)
    if expire_ms == -1:  # a version with all fields
        assert decode_value(written) == committed


def test_truncated_or_damaged_values_raise_only_decode_errors() -> None:
    for _ in range(100):
        value = serde.encode_value(random_struct(OffsetCommitValue, RNG.randrange(5), RNG))
        for size in range(len(value)):
            with pytest.raises(DecodeError):
                decode_value(value[:size])
        damaged = bytearray(value)
        damaged[RNG.randrange(len(damaged))] ^= 1 << RNG.randrange(8)
        with suppress(DecodeError):
            decode_value(bytes(damaged))


def test_a_loaded_offset_stays_encoded_unless_it_is_of_a_later_version() -> None:
    key = serde.encode_key(OffsetCommitKey(group="g", topic="t", partition=1))
    value = encode_value(CommittedOffset(1, 2, "", 3))
    assert GROUP_RECORDS.load(key, value) == EncodedRecord(key, value)
    assert GROUP_RECORDS.load(key, None) == EncodedRecord(key, None)
    assert GROUP_RECORDS.load(key, b"\0\5" + value[2:]) == UnknownRecord(1, 5)
    with pytest.raises(DecodeError):
        GROUP_RECORDS.load(key, b"\0")
    for damaged in (key[:-1], key + b"x", b"", key[:3], key[:7]):
        with pytest.raises(DecodeError):
            GROUP_RECORDS.load(damaged, value)
