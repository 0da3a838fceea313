"""Records as Arrow columns: from the bytes of a fetch or a segment to arrays, without an object for any record.

Whole batches are chosen by their headers alone; those chosen are unpacked some megabytes at a time, so that what is
read stays in the processor's caches and no column needs offsets of more than 32 bits.
"""

from collections.abc import Iterable, Iterator

from barnabas.wire.records.arrow_plain import decode_bodies
from barnabas.wire.records.arrow_types import Decoded, Selection
from barnabas.wire.records.batch import BatchHeader, crc_matches, iterate_headers
from barnabas.wire.records.bodies import Body, corrupt
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.record import batch_body

#: Unpacked bytes that are decoded together; a batch that is larger is decoded alone.
CHUNK_BYTES = 4 * 1024 * 1024


def decode_arrow(buffer: Buffer, selection: Selection) -> Iterator[Decoded]:
    """The chosen records of all whole batches in `buffer`, some megabytes at a time; none of the parts is empty.

    Timestamps are microseconds; a record without headers has null for headers.

    :raises KafkaError: CORRUPT_MESSAGE, naming the batch; INVALID_TIMESTAMP for one that microseconds cannot hold.
    """
    view = memoryview(buffer).toreadonly()
    for data, bodies in _chunks(view, _chosen(view, selection)):
        decoded = decode_bodies(data, bodies, selection)
        if decoded.rows_count:
            yield decoded


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
) -> Iterator[tuple[bytes, list[Body]]]:
    """The records of batches, unpacked and one behind the other."""
    parts: list[bytes] = []
    bodies: list[Body] = []
    end = 0
    for position, header in batches:
        part = batch_body(buffer, position, header)
        if end and end + len(part) > CHUNK_BYTES:
            yield b"".join(parts), bodies
            parts, bodies, end = [], [], 0
        parts.append(part)
        bodies.append(Body(header, end, end + len(part)))
        end += len(part)
    if bodies:
        yield b"".join(parts), bodies
