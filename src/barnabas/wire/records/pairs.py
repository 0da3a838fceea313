"""Batches of nothing but keys and values, all of one time: what coordinators write, thousands of them in a second."""

from collections.abc import Sequence

from crc32c import crc32c

from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    CRC_POSITION,
    CRC_START,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.varint import write_varint

#: A key, and a value or None for a tombstone.
Pair = tuple[bytes, bytes | None]

_NO_VALUE = b"\x01"  # the varint of -1
_NO_HEADERS = b"\0"
_ATTRIBUTES_AND_TIMESTAMP_DELTA = b"\0\0"


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


#: The varints of the sizes and deltas that nearly all are.
_SMALL_COUNT = 512
_SMALL = tuple(_varint(number) for number in range(_SMALL_COUNT))


def encode_pairs(
    pairs: Sequence[Pair],
    timestamp_ms: int,
    *,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    transactional: bool = False,
) -> bytearray:
    """One batch of the pairs, as `encode_batch` writes it."""
    assert pairs, "a batch holds at least one record"
    body = b"".join([_encode_pair(delta, *pair) for delta, pair in enumerate(pairs)])
    if compression:
        body = compress(compression, body)
    size_bytes = BATCH_HEADER_BYTES + len(body)
    batch = bytearray(size_bytes)
    BATCH_HEADER.pack_into(
        batch,
        0,
        0,
        size_bytes - BATCH_OVERHEAD_BYTES,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        compression | (TRANSACTIONAL_BIT if transactional else 0),
        len(pairs) - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        len(pairs),
    )
    batch[BATCH_HEADER_BYTES:] = body
    crc = crc32c(memoryview(batch)[CRC_START:])
    batch[CRC_POSITION:CRC_START] = crc.to_bytes(CRC_START - CRC_POSITION)
    return batch


def _encode_pair(delta: int, key: bytes, value: bytes | None) -> bytes:
    head = _ATTRIBUTES_AND_TIMESTAMP_DELTA + _size(delta) + _size(len(key)) + key
    rest = _NO_VALUE if value is None else _size(len(value)) + value
    return _size(len(head) + len(rest) + 1) + head + rest + _NO_HEADERS


def _size(number: int) -> bytes:
    return _SMALL[number] if number < _SMALL_COUNT else _varint(number)
