"""Logs that were made outside of a broker and are taken in by one that serves."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.client.core.metadata import TopicInfo
from barnabas.log.imports.restore_manifest import MANIFEST_FILE, RESTORED_DIRECTORY, RestoreManifest
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.record import Record, encode_batch

NODE_ID = 1
PLACE = TopicPartition("orders", 0)
#: The head was deleted, and compaction has left gaps.
OFFSETS = (100, 101, 107, 5_000_000_000)
TIME_MS = 1_700_000_000_000


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"log.retention.ms": "-1"}) as running:
        running.create_topic(PLACE.topic)
        yield running


def batch(offset: int) -> bytes:
    record = Record(offset, TIME_MS + offset % 10, b"key", b"%d" % offset, (("name", None),))
    return bytes(
        encode_batch([record], base_offset=offset, leader_epoch=0, keep_offsets=True, log_append_time=True)
    )


def id_of(broker: EmbeddedBroker) -> bytes:
    topic = broker.client.admin.describe_topics([PLACE.topic])[PLACE.topic]
    assert isinstance(topic, TopicInfo)
    return topic.topic_id


def hand_over(
    broker: EmbeddedBroker, offsets: Sequence[int] = OFFSETS, end: int | None = None, topic_id: bytes = b""
) -> Path:
    """Write a log of these offsets, the last of them in a segment of its own."""
    directory = broker.directory / str(PLACE) / RESTORED_DIRECTORY
    directory.mkdir()
    *first, last = offsets
    (directory / f"{first[0]:020d}.log").write_bytes(b"".join(map(batch, first)))
    (directory / f"{last:020d}.log").write_bytes(batch(last))
    topic_id = topic_id or id_of(broker)
    manifest = RestoreManifest(topic_id, offsets[0], last + 1 if end is None else end)
    (directory / MANIFEST_FILE).write_text(manifest.to_json())
    return directory


def take_in(broker: EmbeddedBroker, path: str | None = None) -> KafkaError | None:
    wanted = {PLACE: str(broker.directory) if path is None else path}
    return broker.client.admin.alter_replica_log_dirs(NODE_ID, wanted)[PLACE]


def bounds(broker: EmbeddedBroker) -> tuple[int, int]:
    found = [broker.client.admin.list_offsets({PLACE: spec})[PLACE] for spec in (EARLIEST, LATEST)]
    first, end = (each.offset for each in found if isinstance(each, ListedOffset))
    return first, end


def test_a_log_is_taken_in_with_its_offsets_times_and_gaps_and_stays_after_a_kill(
    broker: EmbeddedBroker,
) -> None:
    directory = hand_over(broker)
    assert take_in(broker) is None
    assert not directory.exists()
    for kill in (False, True):
        records = broker.records(PLACE.topic)
        assert [each.offset for each in records] == list(OFFSETS)
        assert [each.timestamp_ms for each in records] == [TIME_MS + offset % 10 for offset in OFFSETS]
        assert bounds(broker) == (100, OFFSETS[-1] + 1)
        broker.restart(kill=kill)
    broker.produce(PLACE.topic, "next", partition=0)
    assert broker.records(PLACE.topic)[-1].offset == OFFSETS[-1] + 1


def test_a_log_that_has_had_records_is_left_as_it_is(broker: EmbeddedBroker) -> None:
    broker.produce(PLACE.topic, "there", partition=0)
    directory = hand_over(broker)
    error = take_in(broker)
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert [each.value for each in broker.records(PLACE.topic)] == [b"there"]
    assert not directory.exists(), "what cannot be taken in is removed"


@pytest.mark.parametrize("damage", ["flip", "cut", "end"])
def test_damaged_files_are_not_taken_in(broker: EmbeddedBroker, damage: str) -> None:
    directory = hand_over(broker, end=7_000_000_000 if damage == "end" else None)
    path = max(directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-1] ^= 1
    path.write_bytes(data[: -3 if damage == "cut" else None])
    error = take_in(broker)
    assert error is not None
    assert error.code is ErrorCode.CORRUPT_MESSAGE
    assert bounds(broker) == (0, 0)
    broker.produce(PLACE.topic, "first", partition=0)
    assert [each.offset for each in broker.records(PLACE.topic)] == [0]


def test_files_of_another_topic_or_of_another_kind_are_not_taken_in(broker: EmbeddedBroker) -> None:
    hand_over(broker, topic_id=bytes(16))
    error = take_in(broker)
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    directory = hand_over(broker)
    (directory / "00000000000000000100.snapshot").touch()
    assert take_in(broker) is not None
    directory = hand_over(broker)
    (directory / MANIFEST_FILE).write_text("[]")
    assert take_in(broker) is not None
    assert bounds(broker) == (0, 0)


def test_without_files_to_take_in_nothing_happens_and_what_is_half_written_goes_with_its_topic(
    broker: EmbeddedBroker,
) -> None:
    assert take_in(broker) is None
    directory = hand_over(broker)
    directory.rename(directory.with_name("restored.tmp-1"))
    assert take_in(broker) is None
    broker.restart()
    assert bounds(broker) == (0, 0)
    broker.delete_topic(PLACE.topic)
    broker.create_topic(PLACE.topic)
    assert not (broker.directory / str(PLACE) / "restored.tmp-1").exists()
    assert take_in(broker, "/nowhere") is not None


def test_after_a_kill_between_the_two_renames_the_partition_is_empty_and_can_be_restored(
    broker: EmbeddedBroker,
) -> None:
    aside = hand_over(broker).rename(broker.directory / f"{PLACE}.{1:032x}-delete")
    (broker.directory / str(PLACE)).rename(broker.directory / f"{PLACE}.{2:032x}-delete")
    broker.restart(kill=True)
    assert bounds(broker) == (0, 0)
    assert not aside.exists()
    hand_over(broker)
    assert take_in(broker) is None
    assert bounds(broker) == (100, OFFSETS[-1] + 1)


def test_a_consumer_that_waits_at_the_end_of_the_empty_log_goes_on_in_the_new_one(
    broker: EmbeddedBroker,
) -> None:
    with broker.client.consumer({PLACE: EARLIEST}) as consumer:
        assert consumer.poll(50) == []
        hand_over(broker, (0, 5, 9))
        assert take_in(broker) is None
        found = []
        while len(found) < 3:
            found += consumer.poll(1_000)
    assert [each.offset for each in found] == [0, 5, 9]
