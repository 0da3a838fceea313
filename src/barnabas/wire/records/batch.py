"""Reads and patches the header of a record batch (magic 2, KIP-98) in place."""

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Buffer, Compression

#: The fields of `BatchHeader` for `struct`, in network byte order.
BATCH_HEADER_FORMAT = "qiibIhiqqqhii"
BATCH_HEADER = struct.Struct(">" + BATCH_HEADER_FORMAT)
BATCH_HEADER_BYTES = BATCH_HEADER.size
#: Base offset and length, which `batch_length` does not count.
BATCH_OVERHEAD_BYTES = 12
#: Offset of the magic byte, the same in every message format.
MAGIC_POSITION = 16
#: The CRC covers everything from the attributes to the end of the batch.
CRC_POSITION = 17
CRC_START = 21
MAGIC = 2
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
SEQUENCE_LIMIT = 1 << 31

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

#: The smallest record of the oldest format; a shorter length means damage.
LENGTH_BYTES_MIN = 14

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_OFFSET_LENGTH_EPOCH = struct.Struct(">qii")
_CRC_AND_ATTRIBUTES = struct.Struct(">Ih")
_MAX_TIMESTAMP = struct.Struct(">q")
_CRC = struct.Struct(">I")
_MAX_TIMESTAMP_POSITION = 35
#: The second byte of the attributes, which has all bits that are in use.
_ATTRIBUTES_LOW_POSITION = CRC_START + 1

assert BATCH_HEADER_BYTES == 61


#: The fields of `BatchHeader` as a plain tuple; the hot path does not make the object.
HeaderFields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records, field by field."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        """Offset of the last record, even if compaction removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, with the header."""
        return self.batch_length + BATCH_OVERHEAD_BYTES

    @property
    def compression(self) -> Compression:
        """The codec of the records.

        :raises KafkaError: CORRUPT_MESSAGE for an unknown codec.
        """
        codec = self.attributes & COMPRESSION_MASK
        if codec > Compression.ZSTD:
            message = f"compression codec {codec} in the batch at offset {self.base_offset} does not exist"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        return Compression(codec)

    @property
    def is_control(self) -> bool:
        """Whether the records are transaction markers or other control records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker stamped the records (`message.timestamp.type=LogAppendTime`)."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the delete horizon (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time after which tombstones may be removed (KIP-534); None before the first compaction."""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapping from 2^31 - 1 to 0; -1 without a producer id."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_LIMIT


def compression_of(records: Buffer) -> int:
    """Return the codec of the first batch; 0 if there is no batch. The batch is not checked."""
    return (
        records[_ATTRIBUTES_LOW_POSITION] & COMPRESSION_MASK if len(records) > _ATTRIBUTES_LOW_POSITION else 0
    )


def is_transactional(records: Buffer) -> bool:
    """Return whether the first batch belongs to a transaction. The batch is not checked."""
    return len(records) > _ATTRIBUTES_LOW_POSITION and bool(
        records[_ATTRIBUTES_LOW_POSITION] & TRANSACTIONAL_BIT
    )


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`, where 61 bytes must be available."""
    return tuple.__new__(BatchHeader, BATCH_HEADER.unpack_from(buffer, position))


def iterate_headers(
    buffer: Buffer, position: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """Each complete batch as (position, header) up to `end`; stops before an incomplete one.

    :raises KafkaError: CORRUPT_MESSAGE for an invalid length or magic byte.
    """
    limit = len(buffer) if end is None else end
    while limit - position >= BATCH_OVERHEAD_BYTES:
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
        _check_length(base_offset, length, LENGTH_BYTES_MIN)
        if limit - position < length + BATCH_OVERHEAD_BYTES:
            return
        magic = buffer[position + MAGIC_POSITION]
        if magic != MAGIC:
            message = f"message format {magic} at offset {base_offset}: only magic {MAGIC} is supported"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        _check_length(base_offset, length, BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES)
        yield position, read_header(buffer, position)
        position += length + BATCH_OVERHEAD_BYTES


def first_is_whole(buffer: Buffer) -> bool:
    """Whether the first batch is complete."""
    if len(buffer) < BATCH_OVERHEAD_BYTES:
        return False
    _, length = _OFFSET_AND_LENGTH.unpack_from(buffer)
    return bool(length + BATCH_OVERHEAD_BYTES <= len(buffer))


def _check_length(base_offset: int, length: int, minimum: int) -> None:
    if length < minimum:
        message = f"length {length} of the batch at offset {base_offset}: at least {minimum} is needed"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the CRC-32C of everything behind the CRC field matches the header."""
    return compute_crc(buffer, position, header.size_bytes) == header.crc


def compute_crc(buffer: Buffer, position: int, size_bytes: int) -> int:
    """CRC-32C of the batch of `size_bytes` at `position`, without copies."""
    with memoryview(buffer)[position + CRC_START : position + size_bytes] as covered:
        return crc32c(covered)


def assign(batch: Buffer, base_offset: int, batch_length: int, leader_epoch: int) -> None:
    """Set the batch's base offset and leader epoch, which the CRC does not cover; the length field stays."""
    _OFFSET_LENGTH_EPOCH.pack_into(batch, 0, base_offset, batch_length, leader_epoch)


def placed(header: HeaderFields, base_offset: int, leader_epoch: int) -> BatchHeader:
    """Return the header as `assign` leaves it."""
    return BatchHeader(base_offset, header[1], leader_epoch, *header[3:])


def stamp_append_time(buffer: Buffer, position: int, header: BatchHeader, now_ms: int) -> BatchHeader:
    """Set the timestamp of every record to `now_ms` (LogAppendTime) and return the new header."""
    return _stamp(buffer, position, header, header.attributes | LOG_APPEND_TIME_BIT, now_ms)


def stamp_create_time(buffer: Buffer, position: int, header: BatchHeader, largest_ms: int) -> BatchHeader:
    """Set CreateTime and the largest timestamp, unless the header has them."""
    return _stamp(buffer, position, header, header.attributes & ~LOG_APPEND_TIME_BIT, largest_ms)


def _stamp(
    buffer: Buffer, position: int, header: BatchHeader, attributes: int, max_timestamp: int
) -> BatchHeader:
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return header
    _CRC_AND_ATTRIBUTES.pack_into(buffer, position + CRC_POSITION, 0, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    return seal(buffer, position)


def seal(buffer: Buffer, position: int) -> BatchHeader:
    """Write the CRC of the batch at `position` and return its header."""
    header = read_header(buffer, position)
    crc = compute_crc(buffer, position, header.size_bytes)
    _CRC.pack_into(buffer, position + CRC_POSITION, crc)
    return header._replace(crc=crc)
