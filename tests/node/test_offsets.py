"""ListOffsets, DeleteRecords and OffsetForLeaderEpoch."""

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch
from support.batches import NOW_MS, batch, values_of
from support.wire import Wire

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
TIMES_MS = [10, 30, 20, 40, 40, 35, 50]


@pytest.fixture
def filled(kafka: EmbeddedBroker, wire: Wire) -> Wire:
    """Fill t-0 with seven records in three batches of different codecs, at TIMES_MS after NOW_MS."""
    kafka.create_topic("t")
    slices = (
        (slice(0, 3), Compression.NONE),
        (slice(3, 6), Compression.ZSTD),
        (slice(6, 7), Compression.GZIP),
    )
    for part, codec in slices:
        records = [Record(0, NOW_MS + time_ms, None, b"x") for time_ms in TIMES_MS[part]]
        wire.produce("t", encode_batch(records, compression=codec))
    return wire


@pytest.mark.parametrize(
    ("marker", "offset", "timestamp", "first_version"),
    [
        (LATEST, 7, -1, 1),
        (EARLIEST, 0, -1, 1),
        (MAX_TIMESTAMP, 6, NOW_MS + 50, 7),
        (EARLIEST_LOCAL, 0, -1, 8),
        (LATEST_TIERED, -1, -1, 9),
        (PENDING_UPLOAD, -1, -1, 11),
    ],
)
def test_special_timestamps_return_their_offsets_since_their_version(
    filled: Wire, marker: int, offset: int, timestamp: int, first_version: int
) -> None:
    for version in range(1, 12):
        found = filled.list_offset("t", marker, version=version)
        if version < first_version:
            assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, offset, timestamp)


@pytest.mark.parametrize(
    ("time_ms", "offset"),
    [(0, 0), (10, 0), (11, 1), (25, 1), (30, 1), (31, 3), (36, 3), (40, 3), (41, 6), (50, 6), (51, -1)],
)
def test_a_timestamp_returns_the_first_record_at_or_after_it(filled: Wire, time_ms: int, offset: int) -> None:
    found = filled.list_offset("t", NOW_MS + time_ms)
    assert found.offset == offset
    assert found.timestamp == (NOW_MS + TIMES_MS[offset] if offset >= 0 else -1)


def test_timestamps_are_found_after_a_restart(kafka: EmbeddedBroker, filled: Wire) -> None:
    for kill in (False, True):
        kafka.restart(kill=kill)
        with Wire(kafka.port) as wire:
            assert wire.list_offset("t", NOW_MS + 31).offset == 3
            assert wire.list_offset("t", MAX_TIMESTAMP).offset == 6


def test_timestamps_are_found_across_many_segments(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"internal.segment.bytes": "2000", "index.interval.bytes": "100"})
    for number in range(100):
        wire.produce("t", batch(b"x" * 200, timestamp_ms=NOW_MS + 10 * number))
    assert len(list((kafka.directory / "t-0").glob("*.log"))) > 5
    for number in range(100):
        assert wire.list_offset("t", NOW_MS + 10 * number - 5).offset == number


def test_an_unknown_partition_or_epoch_is_an_error(filled: Wire) -> None:
    assert filled.list_offset("t", LATEST, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.list_offset("nope", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    newer = filled.list_offset("t", LATEST, current_leader_epoch=3)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_duplicate_partition_is_an_error_and_others_are_not(kafka: EmbeddedBroker, filled: Wire) -> None:
    kafka.create_topic("other")
    partitions = [ListOffsetsPartition(timestamp=LATEST), ListOffsetsPartition(timestamp=EARLIEST)]
    request = ListOffsetsRequest(replica_id=-1)
    request.topics = [
        ListOffsetsTopic(name="t", partitions=partitions),
        ListOffsetsTopic(name="other", partitions=partitions[:1]),
    ]
    twice, once = filled.ask(request).topics
    assert {answer.error_code for answer in twice.partitions} == {ErrorCode.INVALID_REQUEST}
    assert once.partitions[0].error_code == ErrorCode.NONE


# DeleteRecords


def delete(wire: Wire, offset: int, topic: str = "t", partition: int = 0) -> DeleteRecordsPartitionResult:
    requested = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[requested])])
    result: DeleteRecordsPartitionResult = wire.ask(request).topics[0].partitions[0]
    return result


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (2, 2), (7, 7), (-1, 7)])
def test_deleted_records_are_out_of_range(filled: Wire, offset: int, start: int) -> None:
    result = delete(filled, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, start)
    assert filled.list_offset("t", EARLIEST).offset == start
    assert filled.fetch("t", start).log_start_offset == start
    if start:
        assert filled.fetch("t", start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_maximum_timestamp_includes_deleted_records_as_in_kafka(filled: Wire) -> None:
    delete(filled, 7)
    found = filled.list_offset("t", MAX_TIMESTAMP)
    assert (found.offset, found.timestamp) == (6, NOW_MS + 50)


@pytest.mark.parametrize("offset", [8, -2])
def test_records_beyond_the_high_watermark_cannot_be_deleted(filled: Wire, offset: int) -> None:
    assert delete(filled, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert filled.list_offset("t", EARLIEST).offset == 0


def test_deleting_before_the_log_start_changes_nothing(filled: Wire) -> None:
    delete(filled, 5)
    assert delete(filled, 2).low_watermark == 5


def test_records_of_unknown_or_compacted_topics_cannot_be_deleted(
    kafka: EmbeddedBroker, filled: Wire
) -> None:
    kafka.create_topic("compacted", configs={"cleanup.policy": "compact"})
    kafka.create_topic("both", configs={"cleanup.policy": "compact,delete"})
    assert delete(filled, 0, "compacted").error_code == ErrorCode.POLICY_VIOLATION
    assert delete(filled, 0, "both").error_code == ErrorCode.NONE
    assert delete(filled, 0, "nope").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(filled, 0, "t", 3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("kill", [False, True])
def test_deleted_records_stay_deleted_after_a_restart(
    kafka: EmbeddedBroker, filled: Wire, kill: bool
) -> None:
    delete(filled, 6)
    kafka.restart(kill=kill)
    with Wire(kafka.port) as wire:
        start = wire.list_offset("t", EARLIEST).offset
        # A kill may lose deletions that are not in a checkpoint: those records are visible again, nothing else is lost.
        assert start == 6 or (kill and start == 0)
        assert values_of(wire.fetch("t", start).records)[-1] == b"x"


# OffsetForLeaderEpoch


def end_of_epoch(wire: Wire, epoch: int, current: int = -1, partition: int = 0) -> tuple[int, int, int]:
    requested = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[requested])])
    answer = wire.ask(request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_the_current_epoch_ends_at_the_log_end(filled: Wire) -> None:
    assert end_of_epoch(filled, 0) == (ErrorCode.NONE, 0, 7)
    assert end_of_epoch(filled, 5) == (ErrorCode.NONE, -1, -1)
    assert end_of_epoch(filled, 0, current=2) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert end_of_epoch(filled, 0, partition=4) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
