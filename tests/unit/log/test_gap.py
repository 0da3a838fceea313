"""Leaders whose log has lost the last batches of a segment, and not the next segment."""

from collections.abc import Callable

import pytest

from barnabas.log.gap import begin_epoch_at_gap
from barnabas.log.partition_log import PartitionLog
from support.batches import batch

OpenLog = Callable[..., PartitionLog]

#: Of two batches.
SEGMENT_BYTES = 2 * len(batch(b"x" * 100))


def filled(log: PartitionLog) -> PartitionLog:
    """Append six batches in three segments."""
    for _ in range(6):
        log.append_as_leader(batch(b"x" * 100), 3)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    return log


def epochs_of(log: PartitionLog) -> list[tuple[int, int]]:
    """Return the offset and the leader epoch of each batch, of which the checksum is right."""
    found = []
    for segment in log.segments:
        for position, header in segment.headers():
            assert segment.crc_matches(position, header)
            found.append((header.base_offset, header.partition_leader_epoch))
    return found


def test_batches_behind_the_gap_get_the_epoch_of_the_leader(open_log: OpenLog) -> None:
    log = filled(open_log(segment_bytes=SEGMENT_BYTES))
    first, *_ = log.segments
    first.cut(len(batch(b"x" * 100)))
    log.gap_offset = 1
    begin_epoch_at_gap(log, 7)
    assert epochs_of(log) == [(0, 3), (2, 7), (3, 7), (4, 7), (5, 7)]
    assert log.epochs.entries == ((3, 0), (7, 1))
    assert log.epochs.end_offset_for(3, log.log_end_offset) == (3, 1), "followers truncate at the gap"


def test_batches_behind_the_gap_may_be_in_one_segment_with_those_before_it_after_a_compaction(
    open_log: OpenLog,
) -> None:
    log = open_log()
    for _ in range(4):
        log.append_as_leader(batch(b"x" * 100), 3)
    log.gap_offset = 2
    begin_epoch_at_gap(log, 7)
    assert epochs_of(log) == [(0, 3), (1, 3), (2, 7), (3, 7)]
    assert log.epochs.entries == ((3, 0), (7, 2))


def test_a_flush_that_began_before_does_not_include_the_new_epochs(open_log: OpenLog) -> None:
    log = filled(open_log(segment_bytes=SEGMENT_BYTES))
    log.gap_offset = 2
    flushed = log.sync()
    begin_epoch_at_gap(log, 7)
    log.gap_offset = None
    log.mark_flushed(flushed)
    assert log.recovery_point <= 2
    assert log.flush() == log.log_end_offset


def test_a_log_without_a_gap_is_not_changed(open_log: OpenLog) -> None:
    log = filled(open_log(segment_bytes=SEGMENT_BYTES))
    begin_epoch_at_gap(log, 7)
    assert {epoch for _, epoch in epochs_of(log)} == {3}
    assert log.epochs.entries == ((3, 0),)


def test_batches_that_cannot_be_read_are_left_as_they_are(
    open_log: OpenLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log = filled(open_log(segment_bytes=SEGMENT_BYTES))
    log.gap_offset = 1
    *_, last = log.segments
    last.path.write_bytes(bytes(SEGMENT_BYTES))
    begin_epoch_at_gap(log, 7)
    assert log.failure is None
    assert "cannot read the batches behind a gap" in capsys.readouterr().err
