"""Batches with valid headers and CRCs, and invalid records."""

import struct

from barnabas.wire.records.batch import BATCH_HEADER_BYTES, seal
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.records.varint import write_varint

NOW_MS = 1_700_000_000_000


def with_body(batch: bytes | bytearray | memoryview, packed: bytes, count: int | None = None) -> memoryview:
    """Combine the header of `batch` with another body; length, record count and CRC are made valid."""
    made = bytearray(batch[:BATCH_HEADER_BYTES]) + packed
    struct.pack_into(">i", made, 8, len(made) - 12)
    if count is not None:
        struct.pack_into(">i", made, 23, count - 1)
        struct.pack_into(">i", made, 57, count)
    seal(made, 0)
    return memoryview(made)


def batch_of(codec: Compression, body: bytes, count: int = 1) -> memoryview:
    """Build a batch around bytes that may not be records, compressed."""
    empty = encode_batch([Record(0, NOW_MS, None, None)], compression=codec)
    return with_body(empty, compress(codec, body), count)


def record_with_headers(count: int) -> bytes:
    """Build a record without key and value, with this number of empty headers."""
    body = bytearray(b"\0\0\0\1\1")
    write_varint(body, count)
    body += bytes(2 * count)
    length = bytearray()
    write_varint(length, len(body))
    return bytes(length + body)
