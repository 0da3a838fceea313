"""The hand-written form of offsets' records is the one that `serde` reads and writes."""

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

DICE = random.Random(4)


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
def test_keys_are_taken_apart_as_serde_does(kind: type[OffsetCommitKey]) -> None:
    for _ in range(200):
        key = random_struct(kind, 0, DICE)
        group_id, key_end = split_key(serde.encode_key(key))
        assert group_id == key.group
        assert decode_partition(key_end) == (key.topic, key.partition)


def test_keys_are_put_together_as_serde_does() -> None:
    for _ in range(200):
        key = random_struct(OffsetCommitKey, 0, DICE)
        key_end = encode_partition(key.topic, key.partition)
        assert encode_group(key.group) + key_end == serde.encode_key(key)
        assert key_end.startswith(encode_topic(key.topic))


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_values_of_every_version_are_read_as_serde_does(version: int) -> None:
    for _ in range(300):
        value = random_struct(OffsetCommitValue, version, DICE)
        assert decode_value(serde.encode_value(value, version)) == as_committed(value)


def test_values_of_the_legacy_form_are_read_too() -> None:
    value = LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    assert decode_value(serde.encode_value(value)) == CommittedOffset(5, -1, "m", 9)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4096, 20_000])
@pytest.mark.parametrize("topic_id", [ZERO_UUID, bytes(range(16))])
@pytest.mark.parametrize("expire_ms", [-1, 0, 77])
def test_values_are_written_as_serde_does(size: int, topic_id: bytes, expire_ms: int) -> None:
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
    if expire_ms == -1:  # a version that keeps all there is
        assert decode_value(written) == committed


def test_values_cut_short_or_damaged_are_malformed_and_nothing_else() -> None:
    for _ in range(100):
        value = serde.encode_value(random_struct(OffsetCommitValue, DICE.randrange(5), DICE))
        for size in range(len(value)):
            with pytest.raises(DecodeError):
                decode_value(value[:size])
        damaged = bytearray(value)
        damaged[DICE.randrange(len(damaged))] ^= 1 << DICE.randrange(8)
        with suppress(DecodeError):
            decode_value(bytes(damaged))


def test_a_loaded_offset_stays_encoded_and_one_of_a_later_version_is_left_alone() -> None:
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
