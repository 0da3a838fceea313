"""Reads ranges one after the other: their batches, or their records."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from barnabas.reading.offset_range import OffsetRange, PlannedRange
from barnabas.reading.opening import open_reader
from barnabas.reading.options import ReadOptions
from barnabas.reading.range_reader import RawBatches
from barnabas.reading.rows import read_arrow


def scan_batches(
    ranges: Iterable[PlannedRange], options: ReadOptions
) -> Iterator[tuple[OffsetRange, RawBatches]]:
    """Yield the batches of the ranges, as they are stored; each is valid until the next one.

    :raises DataLossError: Records are gone, unless the options tolerate it.
    """
    with closing(open_reader(options)) as reader:
        for offset_range, topic_id, record_bytes in ranges:
            for raw in reader.read(offset_range, topic_id, record_bytes):
                yield offset_range, raw


def scan_records(
    ranges: Iterable[PlannedRange], options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the ranges, with these columns of `rows.ARROW_TYPES`."""
    for offset_range, raw in scan_batches(ranges, options):
        yield from read_ranged_records(offset_range, raw, options, columns)


def read_ranged_records(
    offset_range: OffsetRange, raw: RawBatches, options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of fetched batches."""
    yield from read_arrow(
        raw.batches,
        *offset_range.tp,
        raw.low,
        offset_range.high,
        columns,
        raw.aborted,
        check_crcs=options.check_crcs,
        null_times=options.null_times,
    )
