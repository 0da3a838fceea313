"""Batches over the wire: damage is reported by offsets."""

from collections.abc import Iterator, Sequence

import pytest

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.range_reader import RawBatches
from barnabas.reading.rows import NONE_ABORTED
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import assign, read_header
from pyspark_barnabas.jobs.scrub.batch_checks import Scrubbed
from pyspark_barnabas.jobs.scrub.fetched import scrub_fetched
from support.batches import NOW_MS, batch

TP = TopicPartition("orders", 0)


def placed(base_offset: int, base_sequence: int | None = None) -> bytearray:
    """Build three records of one producer."""
    sequence = base_offset if base_sequence is None else base_sequence
    one = bytearray(
        batch(b"a", b"b", b"c", timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=sequence)
    )
    assign(one, base_offset, read_header(one).batch_length, 0)
    return one


class Leader:
    """A fake leader that returns two batches at a time, or fails; its log start may advance between requests."""

    def __init__(
        self, batches: Sequence[bytearray], starts: Sequence[int] = (0,), code: ErrorCode | None = None
    ) -> None:
        self.batches = batches
        self.starts = list(starts)
        self.code = code
        self.reads_count = 0

    def start(self) -> int:
        return self.starts.pop(0) if len(self.starts) > 1 else self.starts[0]

    def read(self, requested: OffsetRange, _: bytes) -> Iterator[RawBatches]:
        self.reads_count += 1
        expected_batches = [one for one in self.batches if read_header(one).next_offset > requested.low]
        for first in range(0, len(expected_batches), 2):
            yield RawBatches(b"".join(expected_batches[first : first + 2]), requested.low, NONE_ABORTED)
        if self.code is not None:
            raise KafkaError(self.code, "as a test wishes")

    def close(self) -> None: ...


def scrubbed(leader: Leader, end: int = 12, *, allow_gaps: bool = False) -> Scrubbed:
    return scrub_fetched(leader, TP, ZERO_UUID, leader.start, end, allow_gaps=allow_gaps)


def found(leader: Leader, *, allow_gaps: bool = False) -> list[tuple[str, int, int]]:
    findings = scrubbed(leader, allow_gaps=allow_gaps).findings
    assert all(each[1:3] == TP and each[5:7] == ("", -1) for each in findings)
    return [(each.kind, each.first_offset, each.last_offset) for each in findings]


def sound() -> list[bytearray]:
    return [placed(offset) for offset in (0, 3, 6, 9)]


def test_valid_batches_are_counted_and_read_once() -> None:
    leader = Leader([*sound(), placed(12)])  # the last one arrived after the end was requested
    size_bytes = sum(map(len, leader.batches[:4]))
    assert scrubbed(leader) == Scrubbed(*TP, 0, 4, 12, size_bytes, 0, 12)
    assert leader.reads_count == 1


def test_each_damage_is_reported_after_a_second_read() -> None:
    flipped = sound()
    flipped[2][-1] ^= 4
    cases: list[tuple[list[bytearray], list[tuple[str, int, int]]]] = [
        (flipped, [("crc", 6, 8)]),
        ([placed(0), placed(6), placed(9)], [("gap", 3, 5)]),
        ([placed(0), placed(6), placed(3), placed(9)], [("gap", 3, 5), ("order", 3, 5)]),
        ([placed(0), placed(3), placed(6, 7), placed(9, 10)], [("sequence", 6, 8)]),
        ([placed(0), placed(3)], [("cut", 6, 11)]),
    ]
    for batches, expected in cases:
        leader = Leader(batches)
        assert found(leader) == expected
        assert leader.reads_count == 2


def test_an_unreadable_log_is_damage_up_to_the_end() -> None:
    assert found(Leader(sound()[:2], code=ErrorCode.CORRUPT_MESSAGE)) == [("unreadable", 6, 11)]
    assert found(Leader(sound()[:2], code=ErrorCode.OFFSET_NOT_AVAILABLE)) == [("cut", 6, 11)]
    with pytest.raises(KafkaError, match="as a test wishes"):
        scrubbed(Leader(sound(), code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def test_a_compacted_topic_may_lack_offsets_including_the_last() -> None:
    leader = Leader([placed(0), placed(6)], code=ErrorCode.OFFSET_NOT_AVAILABLE)
    assert found(leader, allow_gaps=True) == []


def test_records_deleted_by_retention_meanwhile_are_not_damage() -> None:
    leader = Leader([placed(6), placed(9)], starts=(0, 6))
    assert found(leader) == []
    assert leader.reads_count == 2


def test_a_log_may_start_within_a_batch_and_be_empty() -> None:
    assert found(Leader(sound(), starts=(4,))) == []
    assert scrubbed(Leader([], starts=(12,))).findings_count == 0
