"""Records as Arrow columns: from the bytes of a fetch or a segment to arrays, without an object for any record.

Whole batches are chosen by their headers alone; those chosen are unpacked some megabytes at a time, so that what is
read stays in the processor's caches and no column needs offsets of more than 32 bits.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import groupby

from barnabas.wire.errors import KafkaError
from barnabas.wire.records import arrow_plain
from barnabas.wire.records.arrow_types import Decoded, Selection
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, BatchHeader, crc_matches, iterate_headers
from barnabas.wire.records.bodies import Body, corrupt
from barnabas.wire.records.compression import DECOMPRESSED_BYTES_MAX, Buffer, Compression, decompress_into

#: Unpacked bytes that are decoded together; a batch that is larger is decoded alone.
CHUNK_BYTES = 4 * 1024 * 1024


def decode_arrow(buffer: Buffer, selection: Selection) -> Iterator[Decoded]:
    """The chosen records of all whole batches in `buffer`, some megabytes at a time; none of the parts is empty.

    Timestamps are microseconds; a record without headers has null for headers.

    :raises KafkaError: CORRUPT_MESSAGE, naming the batch; INVALID_TIMESTAMP for one that microseconds cannot hold.
    """
    view = memoryview(buffer).toreadonly()
    decode_bodies = _quickest()
    for data, bodies in _chunks(view, _chosen(view, selection)):
        decoded = decode_bodies(data, bodies, selection)
        if decoded.rows_count:
            yield decoded


@cache
def _quickest() -> Callable[[Buffer, Sequence[Body], Selection], Decoded]:
    if find_spec("numba") is None:
        return arrow_plain.decode_bodies
    from barnabas.wire.records import arrow_numba

    return arrow_numba.decode_bodies


def _chosen(buffer: memoryview, selection: Selection) -> Iterator[tuple[int, BatchHeader]]:
    """Batches with records to be seen, each with its position."""
    for position, header in iterate_headers(buffer):
        if header.next_offset <= selection.low or header.base_offset >= selection.high:
            continue
        if not selection.admits(header):
            continue
        if selection.check_crcs and not crc_matches(buffer, position, header):
            raise corrupt(header, "its checksum is not that of its bytes")
        yield position, header


def _chunks(
    buffer: memoryview, batches: Iterable[tuple[int, BatchHeader]]
) -> Iterator[tuple[memoryview, list[Body]]]:
    """Unpacked records, those of as many batches at a time as are decoded together."""
    for is_packed, run in groupby(batches, lambda batch: batch[1].compression is not Compression.NONE):
        read = _unpacked if is_packed else _in_place
        yield from read(buffer, run)


def _in_place(
    buffer: memoryview, batches: Iterable[tuple[int, BatchHeader]]
) -> Iterator[tuple[memoryview, list[Body]]]:
    first, end = 0, 0
    bodies: list[Body] = []
    for position, header in batches:
        if bodies and position + header.size_bytes - first > CHUNK_BYTES:
            yield buffer[first:end], bodies
            bodies = []
        if not bodies:
            first = position
        end = position + header.size_bytes
        bodies.append(Body(header, position + BATCH_HEADER_BYTES - first, end - first))
    if bodies:
        yield buffer[first:end], bodies


def _unpacked(
    buffer: memoryview, batches: Iterable[tuple[int, BatchHeader]]
) -> Iterator[tuple[memoryview, list[Body]]]:
    """Each chunk lies where the one before it was: pages that are touched for the first time cost most of all."""
    scratch = memoryview(mmap.mmap(-1, CHUNK_BYTES + DECOMPRESSED_BYTES_MAX))
    bodies: list[Body] = []
    end = 0
    for position, header in batches:
        packed = buffer[position + BATCH_HEADER_BYTES : position + header.size_bytes]
        start = end
        try:
            end += decompress_into(
                header.compression, packed, scratch[start : start + DECOMPRESSED_BYTES_MAX]
            )
        except KafkaError as error:
            raise corrupt(header, error.message) from error
        bodies.append(Body(header, start, end))
        if end >= CHUNK_BYTES:
            yield scratch[:end].toreadonly(), bodies
            bodies, end = [], 0
    if bodies:
        yield scratch[:end].toreadonly(), bodies
