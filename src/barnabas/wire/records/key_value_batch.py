"""Encodes and decodes batches of keys and values with one timestamp, which coordinators write by the thousand per
second.
"""

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
    BatchHeader,
)
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.varint import write_varint

#: A key and a value, or None for a tombstone.
Pair = tuple[bytes, bytes | None]

_NO_VALUE = b"\x01"  # the varint of -1
_NO_HEADERS = b"\0"
_ATTRIBUTES_AND_TIMESTAMP_DELTA = b"\0\0"


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


class _Varints(dict[int, bytes]):
    """Varints of sizes and deltas; small ones, which are the majority, are stored."""

    def __missing__(self, number: int) -> bytes:
        return _varint(number)


_VARINTS = _Varints({number: _varint(number) for number in range(512)})


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
    head = _ATTRIBUTES_AND_TIMESTAMP_DELTA + _VARINTS[delta] + _VARINTS[len(key)] + key
    rest = _NO_VALUE if value is None else _VARINTS[len(value)] + value
    return _VARINTS[len(head) + len(rest) + 1] + head + rest + _NO_HEADERS


def split_pairs(body: bytes, header: BatchHeader) -> list[tuple[int, bytes, bytes | None]] | None:
    """Offset delta, key and value of each record in a decompressed body of such a batch.

    None for any other batch, valid or not, which `decode_batch` must read.
    """
    try:
        return _split(body, header)
    except (IndexError, _Unlike):
        return None


class _Unlike(Exception):
    """A record with more than a key and a value, or a damaged one."""


def _split(body: bytes, header: BatchHeader) -> list[tuple[int, bytes, bytes | None]]:
    """Sizes are read inline: a call for each would take longer than everything else."""
    split: list[tuple[int, bytes, bytes | None]] = []
    at = 0
    delta_max = 2 * header.last_offset_delta  # as a varint
    for _ in range(header.records_count):
        size = body[at]
        at += 1
        if size >= 0x80:
            size = size & 0x7F | _second(body, at)
            at += 1
        end = at + (size >> 1)
        odd = size
        delta = body[at + 2]
        if body[at] or body[at + 1]:  # attributes, timestamp delta
            raise _Unlike
        at += 3
        if delta >= 0x80:
            delta = delta & 0x7F | _second(body, at)
            at += 1
        size = body[at]
        at += 1
        if size >= 0x80:
            size = size & 0x7F | _second(body, at)
            at += 1
        key_end = at + (size >> 1)
        key = body[at:key_end]
        odd |= size | delta
        size = body[key_end]
        at = key_end + 1
        value = None
        if size != _NO_VALUE[0]:
            if size >= 0x80:
                size = size & 0x7F | _second(body, at)
                at += 1
            odd |= size
            value_end = at + (size >> 1)
            value = body[at:value_end]
            at = value_end
        # a negative number, an offset outside of the batch, headers, a wrong record size
        if odd & 1 or delta > delta_max or body[at] or at + 1 != end:
            raise _Unlike
        at = end
        split.append((delta >> 1, key, value))
    if at != len(body):
        raise _Unlike
    return split


def _second(body: bytes, at: int) -> int:
    """Return the upper bits of a two-byte varint."""
    if body[at] >= 0x80:
        raise _Unlike
    return body[at] << 7
