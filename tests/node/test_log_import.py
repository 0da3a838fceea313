"""ImportSegments: running brokers import logs that jobs have written."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.extensions.segments import ImportedLog
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.client.core.metadata import TopicInfo
from barnabas.log.import_manifest import MANIFEST_FILE
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from support.restored_logs import TIME_MS, write_restored_log

NODE_ID = 1
TP = TopicPartition("orders", 0)
#: Offsets after record deletion and compaction.
OFFSETS = (100, 101, 107, 5_000_000_000)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"log.retention.ms": "-1"}) as running:
        running.create_topic(TP.topic)
        yield running


def id_of(broker: EmbeddedBroker) -> bytes:
    topic = broker.client.admin.describe_topics([TP.topic])[TP.topic]
    assert isinstance(topic, TopicInfo)
    return topic.topic_id


def write_log(
    broker: EmbeddedBroker, offsets: Sequence[int] = OFFSETS, end: int | None = None, topic_id: bytes = b""
) -> Path:
    path = broker.directory / str(TP)
    return write_restored_log(path, topic_id or id_of(broker), offsets, end)


def import_segments(broker: EmbeddedBroker) -> KafkaError | None:
    result = broker.client.admin.import_segments(NODE_ID, [TP])[TP]
    return result if isinstance(result, KafkaError) else None


def bounds(broker: EmbeddedBroker) -> tuple[int, int]:
    found = [broker.client.admin.list_offsets({TP: spec})[TP] for spec in (EARLIEST, LATEST)]
    first, end = (each.offset for each in found if isinstance(each, ListedOffset))
    return first, end


def test_an_imported_log_keeps_its_offsets_timestamps_and_gaps_after_a_kill_too(
    broker: EmbeddedBroker,
) -> None:
    directory = write_log(broker)
    assert import_segments(broker) is None
    assert not directory.exists()
    for kill in (False, True):
        records = broker.records(TP.topic)
        assert [each.offset for each in records] == list(OFFSETS)
        assert [each.timestamp_ms for each in records] == [TIME_MS + offset % 10 for offset in OFFSETS]
        assert bounds(broker) == (100, OFFSETS[-1] + 1)
        broker.restart(kill=kill)
    broker.produce(TP.topic, "next", partition=0)
    assert broker.records(TP.topic)[-1].offset == OFFSETS[-1] + 1


def test_a_log_that_has_had_records_cannot_be_replaced(broker: EmbeddedBroker) -> None:
    broker.produce(TP.topic, "there", partition=0)
    directory = write_log(broker)
    error = import_segments(broker)
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert [each.value for each in broker.records(TP.topic)] == [b"there"]
    assert not directory.exists(), "rejected files are removed"


@pytest.mark.parametrize("damage", ["flip", "cut", "end"])
def test_damaged_files_are_rejected(broker: EmbeddedBroker, damage: str) -> None:
    directory = write_log(broker, end=7_000_000_000 if damage == "end" else None)
    path = max(directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-1] ^= 1
    path.write_bytes(data[: -3 if damage == "cut" else None])
    error = import_segments(broker)
    assert error is not None
    assert error.code is ErrorCode.CORRUPT_MESSAGE
    assert bounds(broker) == (0, 0)
    broker.produce(TP.topic, "first", partition=0)
    assert [each.offset for each in broker.records(TP.topic)] == [0]


def test_files_of_another_topic_or_of_another_kind_are_rejected(broker: EmbeddedBroker) -> None:
    write_log(broker, topic_id=bytes(16))
    error = import_segments(broker)
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    directory = write_log(broker)
    (directory / "00000000000000000100.snapshot").touch()
    assert import_segments(broker) is not None
    directory = write_log(broker)
    (directory / MANIFEST_FILE).write_text("[]")
    assert import_segments(broker) is not None
    assert bounds(broker) == (0, 0)


def test_an_import_without_files_is_rejected_and_unfinished_files_are_deleted_with_the_topic(
    broker: EmbeddedBroker,
) -> None:
    error = import_segments(broker)
    assert error is not None
    assert (error.code, "no segments to import" in error.message) == (ErrorCode.INVALID_REQUEST, True)
    directory = write_log(broker)
    directory.rename(directory.with_name("import.tmp-1"))
    assert import_segments(broker) is not None
    broker.restart()
    assert bounds(broker) == (0, 0)
    broker.delete_topic(TP.topic)
    broker.create_topic(TP.topic)
    assert not (broker.directory / str(TP) / "import.tmp-1").exists()


def test_partitions_that_do_not_exist_do_not_affect_others(broker: EmbeddedBroker) -> None:
    write_log(broker)
    missing = TopicPartition("nope", 3)
    results = broker.client.admin.import_segments(NODE_ID, [missing, TP])
    assert results[TP] == ImportedLog(100, OFFSETS[-1] + 1)
    error = results[missing]
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_after_a_kill_between_the_two_renames_the_partition_is_empty_and_can_be_restored(
    broker: EmbeddedBroker,
) -> None:
    aside = write_log(broker).rename(broker.directory / f"{TP}.{1:032x}-delete")
    (broker.directory / str(TP)).rename(broker.directory / f"{TP}.{2:032x}-delete")
    broker.restart(kill=True)
    assert bounds(broker) == (0, 0)
    assert not aside.exists()
    write_log(broker)
    assert import_segments(broker) is None
    assert bounds(broker) == (100, OFFSETS[-1] + 1)


def test_a_consumer_that_waits_at_the_end_of_the_empty_log_continues_in_the_imported_one(
    broker: EmbeddedBroker,
) -> None:
    with broker.client.consumer({TP: EARLIEST}) as consumer:
        assert consumer.poll(50) == []
        write_log(broker, (0, 5, 9))
        assert import_segments(broker) is None
        found = []
        while len(found) < 3:
            found += consumer.poll(1_000)
    assert [each.offset for each in found] == [0, 5, 9]


def test_imports_and_rejected_imports_are_counted(broker: EmbeddedBroker) -> None:
    write_log(broker, topic_id=bytes(16))
    assert import_segments(broker) is not None
    write_log(broker)
    assert import_segments(broker) is None
    importer = broker.server.parts.broker.segment_importer
    assert importer.statistics() == {"imported_count": 1, "rejected_count": 1, "running": []}
