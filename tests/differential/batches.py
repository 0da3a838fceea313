"""Record batches as a producer might send them, valid or with one flaw."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    seal,
)
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import Record, batch_body, encode_batch, recompress
from barnabas.wire.records.varint import write_varint
from differential.identities import Identities
from differential.symbols import Now, Symbol

HOUR_MS = 3_600_000


def _header(**changes: Callable[[BatchHeader], int]) -> Callable[[bytearray], bytes]:
    """Return a flaw in the header's fields; the CRC is made valid."""

    def spoil(batch: bytearray) -> bytes:
        header = read_header(batch)
        wrong = header._replace(**{name: change(header) for name, change in changes.items()})
        BATCH_HEADER.pack_into(batch, 0, *wrong)
        if wrong.batch_length == header.batch_length:
            seal(batch, 0)
        return bytes(batch)

    return spoil


def _crc(batch: bytearray) -> bytes:
    batch[-1] ^= 0xFF
    return bytes(batch)


def _spoiled_body(batch: bytearray) -> bytes:
    batch[BATCH_HEADER_BYTES:] = bytes(len(batch) - BATCH_HEADER_BYTES)
    seal(batch, 0)
    return bytes(batch)


def _shorter_body(batch: bytearray) -> bytes:
    """Cut off the last byte of the last record; length and CRC are made valid."""
    shorter = batch[:-1]
    struct.pack_into(">i", shorter, 8, len(shorter) - 12)
    seal(shorter, 0)
    return bytes(shorter)


def _old_message(magic: int) -> bytes:
    """Return a message of a format before record batches (CRC zero)."""
    body = bytes([0, 0, 0, 0, magic, 0]) + (bytes(8) if magic else b"") + b"\xff\xff\xff\xff\x00\x00\x00\x01v"
    return struct.pack(">qi", 0, len(body)) + body


def _records(change: Callable[[bytearray], bytes]) -> Callable[[bytearray], bytes]:
    """Return a flaw in the records before compression."""

    def spoil(batch: bytearray) -> bytes:
        header = read_header(batch)
        body = change(bytearray(batch_body(batch, 0, header)))
        return bytes(recompress(header, body, header.compression))

    return spoil


def _byte(position: int, change: Callable[[int], int]) -> Callable[[bytearray], bytes]:
    """Return a flaw in one byte of the records: 0 length, 1 attributes, 2 and 3 deltas, 4 the length of a short
    key.
    """

    def spoil(body: bytearray) -> bytes:
        body[position] = change(body[position])
        return bytes(body)

    return _records(spoil)


def _last_field(field: bytes) -> Callable[[bytearray], bytes]:
    """Return a flaw in the headers of the first record, whose length is made valid."""

    def spoil(body: bytearray) -> bytes:
        size_bytes = body[0] // 2
        first, rest = body[1 : size_bytes + 1], body[size_bytes + 1 :]
        longer = first[:-1] + field
        length = bytearray()
        write_varint(length, len(longer))
        return bytes(length + longer + rest)

    return _records(spoil)


def _packed(change: Callable[[Compression, bytes], bytes]) -> Callable[[bytearray], bytes]:
    """Return a flaw in the compressed records; length and CRC are made valid."""

    def spoil(batch: bytearray) -> bytes:
        header = read_header(batch)
        changed = batch[:BATCH_HEADER_BYTES] + change(header.compression, batch_body(batch, 0, header))
        struct.pack_into(">i", changed, 8, len(changed) - 12)
        seal(changed, 0)
        return bytes(changed)

    return spoil


def _in_two(codec: Compression, body: bytes) -> bytes:
    half = len(body) // 2
    return compress(codec, body[:half]) + compress(codec, body[half:])


#: Flaws of a batch, by name.
FLAWS: dict[str, Callable[[bytearray], bytes]] = {
    "wrong crc": _crc,
    "magic 0": lambda batch: _old_message(0),
    "magic 1": lambda batch: _old_message(1),
    "magic 3": _header(magic=lambda header: 3),
    "magic -1": _header(magic=lambda header: -1),
    "one record too many": _header(records_count=lambda header: header.records_count + 1),
    "one record too few": _header(
        records_count=lambda header: header.records_count - 1,
        last_offset_delta=lambda header: header.last_offset_delta - 1,
    ),
    "count and delta too large": _header(
        records_count=lambda header: header.records_count + 1,
        last_offset_delta=lambda header: header.last_offset_delta + 1,
    ),
    "no records": _header(records_count=lambda header: 0, last_offset_delta=lambda header: -1),
    "negative count": _header(records_count=lambda header: -1),
    "delta too large": _header(last_offset_delta=lambda header: header.last_offset_delta + 1),
    "negative delta": _header(last_offset_delta=lambda header: -1),
    "length too large": _header(batch_length=lambda header: header.batch_length + 1),
    "length too small": _header(batch_length=lambda header: header.batch_length - 1),
    "length of a header": _header(batch_length=lambda header: BATCH_HEADER_BYTES - 12),
    "length zero": _header(batch_length=lambda header: 0),
    "length negative": _header(batch_length=lambda header: -1),
    "base offset 5": _header(base_offset=lambda header: 5),
    "base offset -1": _header(base_offset=lambda header: -1),
    "leader epoch 7": _header(partition_leader_epoch=lambda header: 7),
    "control": _header(attributes=lambda header: header.attributes | CONTROL_BIT),
    "transactional": _header(attributes=lambda header: header.attributes | TRANSACTIONAL_BIT),
    "append time": _header(attributes=lambda header: header.attributes | LOG_APPEND_TIME_BIT),
    "delete horizon": _header(attributes=lambda header: header.attributes | 0x40),
    "unused attribute": _header(attributes=lambda header: header.attributes | 0x80),
    "codec 5": _header(attributes=lambda header: header.attributes & ~7 | 5),
    "codec 7": _header(attributes=lambda header: header.attributes & ~7 | 7),
    "says gzip": _header(attributes=lambda header: header.attributes & ~7 | 1),
    "says zstd": _header(attributes=lambda header: header.attributes & ~7 | 4),
    "wrong max timestamp": _header(max_timestamp=lambda header: header.max_timestamp + 7),
    "no max timestamp": _header(max_timestamp=lambda header: -1),
    "base timestamp -1": _header(base_timestamp=lambda header: -1),
    "producer id -2": _header(producer_id=lambda header: -2),
    "producer epoch -1": _header(producer_epoch=lambda header: -1),
    "base sequence -1": _header(base_sequence=lambda header: -1),
    "base sequence -2": _header(base_sequence=lambda header: -2),
    "two batches": lambda batch: bytes(batch + batch),
    "bytes behind": lambda batch: bytes(batch + b"\x00\x01"),
    "half a batch behind": lambda batch: bytes(batch + batch[:40]),
    "cut off": lambda batch: bytes(batch[:-1]),
    "header only": lambda batch: bytes(batch[:BATCH_HEADER_BYTES]),
    "half a header": lambda batch: bytes(batch[:30]),
    "five bytes": lambda batch: bytes(batch[:5]),
    "spoiled records": _spoiled_body,
    "last record cut": _shorter_body,
    "record too long": _byte(0, lambda length: length + 2),
    "record too short": _byte(0, lambda length: length - 2),
    "negative record length": _byte(0, lambda length: length + 1),
    "attributes of a record": _byte(1, lambda attributes: 0x55),
    "timestamp below none": _byte(2, lambda delta: 0x7F),
    "offset delta 5": _byte(3, lambda delta: 10),
    "negative offset delta": _byte(3, lambda delta: 1),
    "key too long": _byte(4, lambda length: 100),
    "key of negative length": _byte(4, lambda length: 5),
    "bytes behind the records": _records(lambda body: bytes(body) + b"\0\0\0\0\0\0\0"),
    "number of 33 bits": _last_field(b"\x80\x80\x80\x80\x10"),
    "negative count of headers": _last_field(b"\x01"),
    "more headers than bytes": _last_field(b"\x7e"),
    "header without a key": _last_field(b"\x02\x01\x01"),
    "header without a value": _last_field(b"\x02\x02k\x01"),
    "header that is cut off": _last_field(b"\x02\x02k\x08v"),
}

#: Flaws of compressed bytes.
PACKED_FLAWS: dict[str, Callable[[bytearray], bytes]] = {
    "packed in two": _packed(_in_two),
    "packed bytes missing": _packed(lambda codec, body: compress(codec, body)[:-5]),
    "packed bytes behind": _packed(lambda codec, body: compress(codec, body) + b"\0\0\0\0\0"),
    "packed nothing": _packed(lambda codec, body: b""),
    "packed zeros": _packed(lambda codec, body: bytes(50)),
}


#: Flaws for which Apache Kafka fails the whole request.
UNREADABLE = {
    "magic 3", "magic -1", "length of a header", "length too small", "length zero", "length negative", "codec 5",
    "codec 7",
}  # fmt: skip

#: Flaws that Apache Kafka ignores, in uncompressed or in compressed records; not every consumer can read the result.
TAKEN = {
    "offset delta 5", "negative offset delta", "number of 33 bits", "record too long", "record too short",
    "negative record length", "packed bytes behind", "packed in two",
}  # fmt: skip


@dataclass(frozen=True)
class Batch(Symbol):
    """One record batch; its producer id and sequence depend on the broker that receives it."""

    #: (timestamp, key, value) of each record
    records: tuple[tuple[int | Now, bytes | None, bytes | None], ...] = ((1000, b"k", b"v"),)
    compression: Compression = Compression.NONE
    producer: int | None = None  #: index of the producer id in this world
    epoch: int = 0
    sequence: int = 0  #: relative to the producer's next sequence
    restarts: bool = False  #: whether the sequence starts again at 0
    flaw: str | None = None

    def resolve(self, identities: Identities) -> Any:
        records = [
            Record(offset, stamp.resolve(identities) if isinstance(stamp, Now) else stamp, key, value)
            for offset, (stamp, key, value) in enumerate(self.records)
        ]
        producer: dict[str, Any] = {}
        if self.producer is not None:
            key = (identities.tp, self.producer)
            following = 0 if self.restarts else identities.next_sequences.get(key, 0)
            sequence = max(-1, following + self.sequence) & 0x7FFF_FFFF
            identities.pending[key] = sequence + len(records)
            producer = {
                "producer_id": identities.producer_id(self.producer),
                "producer_epoch": self.epoch,
                "base_sequence": sequence,
            }
        batch = encode_batch(records, compression=self.compression, **producer)
        return bytes(batch) if self.flaw is None else (FLAWS | PACKED_FLAWS)[self.flaw](batch)
