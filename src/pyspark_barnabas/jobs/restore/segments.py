"""Write rows of a partition as log segments whose records keep the offset, timestamp and timestamp type of the row.

Consecutive offsets are written as whole batches by the kernels. Across small gaps, as compaction leaves them, records
share a batch that skips offsets, like batches of the cleaner. Larger gaps between batches are filled with batches
without records, so that they do not look like data loss. This module does not depend on brokers or on Spark.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa

from barnabas.base import disk
from barnabas.log.files import LOG_SUFFIX, offset_file
from barnabas.log.import_manifest import MANIFEST_FILE, ImportManifest
from barnabas.log.segments.segment import RELATIVE_OFFSET_MAX
from barnabas.wire.records.arrow_encode import ArrowEncoder
from barnabas.wire.records.arrow_rows import Batching, Columns, Longs
from barnabas.wire.records.batch import (
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    assign,
    read_header,
    stamp_append_time,
)
from barnabas.wire.records.compression import Buffer, Compression
from barnabas.wire.records.record import Record, assemble, encode_batch

SEGMENT_BYTES = 256 * 1024 * 1024
BATCH_BYTES = 256 * 1024
LEADER_EPOCH = 0
APPEND_TIME = 1
#: Runs of consecutive offsets that are shorter than this share batches.
_RUN_COUNT_MIN = 32
_SHARED_COUNT_MAX = 1_000


def encode_rows(rows: pa.RecordBatch, compression: Compression) -> Iterator[Buffer]:
    """Encode rows, which must be of one partition and in the order of their offsets, as batches.

    :raises KafkaError: INVALID_TIMESTAMP; INVALID_RECORD for a header without a key.
    """
    offsets: Longs = rows.column("offset").to_numpy()
    types = rows.column("timestampType").to_numpy()
    times_us = rows.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    times_ms: Longs = times_us.to_numpy() // 1_000
    columns = Columns(rows.column("key"), rows.column("value"), rows.column("headers"), times_ms)
    encoder = ArrowEncoder(columns)
    batching = Batching(BATCH_BYTES, compression)
    breaks = (np.diff(types) != 0) | ((types[1:] == APPEND_TIME) & (np.diff(times_ms) != 0))
    gaps = np.diff(offsets) != 1
    for first, end in _parts(breaks, len(rows)):
        stamp = int(times_ms[first]) if types[first] == APPEND_TIME else None
        for low, high in _runs(gaps[first : end - 1], offsets[first:end]):
            run = slice(first + low, first + high)
            if offsets[run.stop - 1] - offsets[run.start] == run.stop - run.start - 1:
                yield from _whole(encoder, batching, offsets, run, stamp)
            else:
                yield _skipping(rows.slice(run.start, high - low), times_ms[run], compression, stamp)


def _parts(breaks: np.ndarray[Any, Any], count: int) -> Iterator[tuple[int, int]]:
    """Yield runs of rows between breaks: `breaks[i]` separates row i + 1 from row i."""
    if count:
        yield from pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), count])


def _runs(gaps: np.ndarray[Any, Any], offsets: Longs) -> Iterator[tuple[int, int]]:
    """Yield long runs without a gap one by one, and short ones merged as far as one batch can reach."""
    pending: tuple[int, int] | None = None
    for first, end in _parts(gaps, len(offsets)):
        is_short = end - first < _RUN_COUNT_MIN
        if pending is not None:
            reaches = int(offsets[end - 1] - offsets[pending[0]]) <= RELATIVE_OFFSET_MAX
            if is_short and reaches and end - pending[0] <= _SHARED_COUNT_MAX:
                pending = pending[0], end
                continue
            yield pending
            pending = None
        if is_short:
            pending = first, end
        else:
            yield first, end
    if pending is not None:
        yield pending


def _whole(
    encoder: ArrowEncoder, batching: Batching, offsets: Longs, run: slice, stamp: int | None
) -> Iterator[Buffer]:
    position = run.start
    for data, records_count in encoder.batches(batching, order=np.arange(run.start, run.stop)):
        header = read_header(data)
        if stamp is not None:
            stamp_append_time(data, 0, header, stamp)
        assign(data, int(offsets[position]), header.batch_length, LEADER_EPOCH)
        yield data
        position += records_count


def _skipping(rows: pa.RecordBatch, times_ms: Longs, compression: Compression, stamp: int | None) -> Buffer:
    fields = [rows.column(name).to_pylist() for name in ("offset", "key", "value", "headers")]
    records = [
        Record(
            offset, time_ms, key, value, tuple((header["key"], header["value"]) for header in headers or ())
        )
        for time_ms, offset, key, value, headers in zip(times_ms.tolist(), *fields, strict=True)
    ]
    return encode_batch(
        records,
        compression=compression,
        log_append_time=stamp is not None,
        base_offset=records[0].offset,
        leader_epoch=LEADER_EPOCH,
        keep_offsets=True,
    )


def empty_batch(first_offset: int, last_offset: int) -> Buffer:
    """Return a batch without records that occupies these offsets."""
    header = BatchHeader(
        base_offset=first_offset,
        batch_length=BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES,
        partition_leader_epoch=LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=last_offset - first_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        records_count=0,
    )
    return assemble(bytearray(BATCH_HEADER_BYTES), header, b"")


class SegmentsWriter:
    """Writes the segments to import into one partition, in a new directory; use as a context manager."""

    def __init__(
        self, directory: Path, manifest: ImportManifest, *, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.directory = directory
        self._manifest = manifest
        self._segment_bytes = segment_bytes
        self._next_offset = manifest.start_offset
        self._base_offset = 0
        self._file: BinaryIO | None = None
        self.records_count = 0

    def __enter__(self) -> Self:
        self.directory.mkdir()
        self._roll(self._manifest.start_offset)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def write(self, batch: Buffer) -> None:
        """Append a batch; a gap before it is filled with batches without records."""
        header = read_header(batch)
        assert self._next_offset <= header.base_offset, (self._next_offset, header)
        self._skip_to(header.base_offset)
        self._append(batch, header)

    def _skip_to(self, offset: int) -> None:
        while self._next_offset < offset:
            last_offset = min(offset - 1, self._next_offset + RELATIVE_OFFSET_MAX)
            batch = empty_batch(self._next_offset, last_offset)
            self._append(batch, read_header(batch))

    def _append(self, batch: Buffer, header: BatchHeader) -> None:
        assert header.last_offset < self._manifest.end_offset, (header, self._manifest)
        assert self._file is not None
        is_full = self._file.tell() + len(batch) > self._segment_bytes and self._file.tell() > 0
        if is_full or header.last_offset - self._base_offset > RELATIVE_OFFSET_MAX:
            self._roll(header.base_offset)
        self._file.write(batch)
        self._next_offset = header.next_offset
        self.records_count += header.records_count

    def finish(self) -> None:
        """Fill the log up to its end offset, write the manifest, and sync everything."""
        self._skip_to(self._manifest.end_offset)
        self._close()
        (self.directory / MANIFEST_FILE).write_text(self._manifest.to_json())
        for path in (*self.directory.iterdir(), self.directory):
            disk.sync_path(path)

    def _roll(self, base_offset: int) -> None:
        self._close()
        self._base_offset = base_offset
        self._file = offset_file(self.directory, base_offset, LOG_SUFFIX).open("wb")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
