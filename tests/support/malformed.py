"""Batches whose headers are right, CRC and all, and whose records are not."""

import struct

from barnabas.wire.records.batch import BATCH_HEADER_BYTES, seal
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.records.varint import write_varint

NOW_MS = 1_700_000_000_000


def with_body(batch: bytes | bytearray | memoryview, packed: bytes, count: int | None = None) -> memoryview:
    """The header of `batch` before other bytes, under a length, a count and a CRC that are right."""
    made = bytearray(batch[:BATCH_HEADER_BYTES]) + packed
    struct.pack_into(">i", made, 8, len(made) - 12)
    if count is not None:
        struct.pack_into(">i", made, 23, count - 1)
        struct.pack_into(">i", made, 57, count)
    seal(made, 0)
    return memoryview(made)


def batch_of(codec: Compression, body: bytes, count: int = 1) -> memoryview:
    """A batch of bytes that may be records, packed."""
    empty = encode_batch([Record(0, NOW_MS, None, None)], compression=codec)
    return with_body(empty, compress(codec, body), count)


def record_with_headers(count: int) -> bytes:
    """A record without key and value, with so many empty headers."""
    body = bytearray(b"\0\0\0\1\1")
    write_varint(body, count)
    body += bytes(2 * count)
    length = bytearray()
    write_varint(length, len(body))
    return bytes(length + body)
