"""Rows of batch headers."""

from datetime import UTC, datetime

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.header_rows import read_header_rows
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.range_reader import RawBatches
from barnabas.reading.rows import NONE_ABORTED
from barnabas.reading.text_options import batch_read_options
from barnabas.wire.records.arrow_types import TIMESTAMP_MS_MAX
from barnabas.wire.records.record import Record, encode_batch


@pytest.mark.parametrize("none", [-1, TIMESTAMP_MS_MAX + 1, -TIMESTAMP_MS_MAX - 1])
def test_a_timestamp_that_microseconds_cannot_hold_is_null(none: int) -> None:
    """As of producers that write nanoseconds; all other batches are needed to find them."""
    batches = b"".join(
        encode_batch([Record(0, time_ms, None, b"v")], base_offset=offset)
        for offset, time_ms in enumerate((none, 1_500))
    )
    options = batch_read_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t"})
    raw = RawBatches(batches, 0, NONE_ABORTED)
    [rows] = read_header_rows(OffsetRange(TopicPartition("t", 0), 0, 9), raw, options, ["maxTimestamp"])
    assert rows.column(0).to_pylist() == [None, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)]
