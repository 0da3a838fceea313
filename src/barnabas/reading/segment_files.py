"""Reads the segments of one partition's directory while a broker may write, roll, compact and remove them."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from barnabas.log.files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
    offset_of,
)
from barnabas.log.segments.offset_index import OffsetIndex
from barnabas.log.segments.transaction_index import read_entries
from barnabas.reading.rows import NONE_ABORTED, AbortedRange, AbortedRanges
from barnabas.wire.records.batch import (
    BATCH_HEADER_BYTES,
    BatchHeader,
    first_is_whole,
    iterate_headers,
    read_header,
)

_CHUNK_BYTES = 8 * 1024 * 1024
#: How often a directory is listed again while its segments are being replaced.
_LISTINGS_COUNT = 50
_PAUSE_S = 0.1
#: Larger than any segment: index entries have four bytes for relative offsets.
_OFFSETS_MAX = 1 << 32


#: Distinguishes a file from a later one with the same name or inode.
_FileId = tuple[int, int]


class Chunk(NamedTuple):
    """Complete batches, some of which may lie before the requested offset; `buffer` is reused."""

    buffer: memoryview
    headers: list[BatchHeader]

    @property
    def next_offset(self) -> int:
        return self.headers[-1].next_offset


class SegmentFiles:
    """Reads a directory; keeps no file open between calls."""

    def __init__(self, directory: Path, pause: Callable[[float], object]) -> None:
        """:param pause: Waits for that many seconds.
        :raises FileNotFoundError: On use, when the directory is gone.
        """
        self.directory = directory
        self._pause = pause

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments, in a consistent state between replacements."""
        before: list[str] | None = None
        for _ in range(_LISTINGS_COUNT):
            names = sorted(name for name in os.listdir(self.directory) if LOG_SUFFIX in name)
            if any(name.endswith(LOG_SUFFIX + SWAP_SUFFIX) for name in names):
                self._pause(_PAUSE_S)
            elif names == before:
                break
            before = names
        offsets = (offset_of(name) for name in before or () if name.endswith(LOG_SUFFIX))
        return sorted(offset for offset in offsets if offset is not None)

    def size_bytes(self) -> int:
        """Return the allocated bytes of all segments."""
        total = 0
        for base_offset in self.base_offsets():
            try:
                total += offset_file(self.directory, base_offset, LOG_SUFFIX).stat().st_size
            except FileNotFoundError:
                continue
        return total

    def chunks(self, low: int, high: int) -> Iterator[Chunk]:
        """Yield batches with offsets of [low, high), in order; each chunk is valid until the next one.

        :raises KafkaError: CORRUPT_MESSAGE when the data below `high` is not a batch.
        """
        position = low
        read: set[_FileId] = set()  # read to the end; compaction may replace them
        while position < high and (opened := self._open(position, high, read)) is not None:
            base_offset, file = opened
            with file:
                start = self._indexed_position(file.fileno(), base_offset, position)
                for chunk in _read_segment(file.fileno(), start, position, high):
                    position = chunk.next_offset
                    yield chunk
                read.add(_file_id(file))

    def continues_at(self, offset: int) -> bool:
        """Whether the log continues at or after `offset`, so that missing records before it will not appear."""
        bases = self.base_offsets()
        return bool(bases) and (bases[-1] >= offset or any(self.chunks(offset, bases[-1] + _OFFSETS_MAX)))

    def _open(self, offset: int, high: int, read: set[_FileId]) -> tuple[int, BinaryIO] | None:
        """Return the first unread segment that may contain `offset` or later ones below `high`."""
        while True:
            bases = self.base_offsets()
            index = max(bisect_right(bases, offset) - 1, 0)
            try:
                for base_offset in bases[index : bisect_left(bases, high)]:
                    file = offset_file(self.directory, base_offset, LOG_SUFFIX).open("rb", buffering=0)
                    if _file_id(file) not in read:
                        return base_offset, file
                    file.close()
            except FileNotFoundError:
                continue  # removed or replaced just now
            return None

    def aborted(self, low: int, high: int) -> AbortedRanges:
        """Return the aborted transactions with records in [low, high)."""
        bases = self.base_offsets()
        first = max(bisect_right(bases, low) - 1, 0)
        ranges = [
            AbortedRange(transaction.producer_id, transaction.first_offset, transaction.last_offset)
            for base_offset in bases[first:]
            for transaction in read_entries(
                offset_file(self.directory, base_offset, TRANSACTION_INDEX_SUFFIX)
            )
            if transaction.first_offset < high and transaction.last_offset >= low
        ]
        return AbortedRanges(ranges) if ranges else NONE_ABORTED

    def _indexed_position(self, fd: int, base_offset: int, offset: int) -> int:
        """Return a batch position at or before `offset`, from the index; an index that does not match the segment is
        ignored.
        """
        index = OffsetIndex(offset_file(self.directory, base_offset, INDEX_SUFFIX), base_offset)
        entry = index.lookup(offset)
        if entry is None:
            return 0
        indexed_offset, position = entry
        header = os.pread(fd, BATCH_HEADER_BYTES, position)
        is_there = len(header) == BATCH_HEADER_BYTES and read_header(header).last_offset == indexed_offset
        return position if is_there else 0


def _file_id(file: BinaryIO) -> _FileId:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_ctime_ns


def _read_segment(fd: int, start: int, low: int, high: int) -> Iterator[Chunk]:
    """Complete batches from the file position `start` on, without leading ones that end before `low`."""
    buffer = bytearray(_CHUNK_BYTES)
    position = start
    while True:
        count = os.preadv(fd, [buffer], position)
        view = memoryview(buffer)[:count]
        if count and not first_is_whole(view):
            if count < len(buffer):
                return  # the file ends with an incomplete batch
            buffer = bytearray(2 * len(buffer))
            continue
        first, end, headers = _select_batches(view, low, high)
        if headers:
            yield Chunk(view[first:end], headers)
        if end == 0 or (headers and headers[-1].next_offset >= high):
            return
        position += end


def _select_batches(view: memoryview, low: int, high: int) -> tuple[int, int, list[BatchHeader]]:
    """Return the start of the requested batches, end of the last complete one, and the headers; stops at `high`."""
    first = end = 0
    headers: list[BatchHeader] = []
    for position, header in iterate_headers(view):
        if header.base_offset >= high:
            break
        if header.next_offset > low:
            first = first if headers else position
            headers.append(header)
        end = position + header.size_bytes
        if header.next_offset >= high:
            break
    return first, end, headers
