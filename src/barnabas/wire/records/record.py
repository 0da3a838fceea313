"""Encodes and decodes single records of a batch."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    COMPRESSION_MASK,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    iterate_headers,
    seal,
)
from barnabas.wire.records.compression import Buffer, Compression, compress, decompress
from barnabas.wire.records.varint import read_varint, write_varint

RecordHeaders = tuple[tuple[str, bytes | None], ...]

#: A batch with more record headers is refused: each becomes an object when the batch is decoded.
RECORD_HEADERS_COUNT_MAX = 1 << 20

#: A header takes at least two bytes, so a count beyond the remaining bytes means damage.
_HEADER_BYTES_MIN = 2


class Record(NamedTuple):
    """One record; `offset` and `timestamp_ms` are absolute."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()


def encode_batch(
    records: Sequence[Record],
    *,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    keep_offsets: bool = False,
    level: int | None = None,
) -> bytearray:
    """Encode one batch of `records`, with consecutive offsets from `base_offset` on.

    With `keep_offsets` they keep their own offsets (ascending, not below `base_offset`), which compaction needs.
    """
    assert records, "a batch holds at least one record"
    deltas = [record.offset - base_offset for record in records] if keep_offsets else range(len(records))
    base_timestamp = records[0].timestamp_ms
    body = compress(compression, _encode_body(records, deltas, base_timestamp), level)
    batch = bytearray(BATCH_HEADER_BYTES + len(body))
    attributes = (
        compression
        | (LOG_APPEND_TIME_BIT if log_append_time else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=len(batch) - BATCH_OVERHEAD_BYTES,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=deltas[-1],
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return assemble(batch, header, body)


def assemble(batch: bytearray, header: BatchHeader, body: bytes) -> bytearray:
    """Write `header`, with its CRC, and `body` into `batch`, which has their size; return it."""
    BATCH_HEADER.pack_into(batch, 0, *header)
    batch[BATCH_HEADER_BYTES:] = body
    seal(batch, 0)
    return batch


def recompress(header: BatchHeader, body: Buffer, codec: Compression, level: int | None = None) -> bytearray:
    """Compress the batch of that header, with its decompressed `body`, by `codec` (`compression.type`)."""
    packed_body = compress(codec, body, level)
    batch = bytearray(BATCH_HEADER_BYTES + len(packed_body))
    packed = header._replace(
        batch_length=len(batch) - BATCH_OVERHEAD_BYTES,
        attributes=header.attributes & ~COMPRESSION_MASK | codec,
    )
    return assemble(batch, packed, packed_body)


def batch_body(buffer: Buffer, position: int, header: BatchHeader) -> bytes:
    """Return the decompressed records of the batch at `position`.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    with memoryview(buffer)[position + BATCH_HEADER_BYTES : position + header.size_bytes] as packed:
        return decompress(header.compression, packed)


def decode_records(buffer: Buffer, position: int = 0) -> list[Record]:
    """Return the records of the batch at `position`; the caller checks its CRC.

    :raises KafkaError: CORRUPT_MESSAGE for an incomplete or malformed batch.
    """
    for start, header in iterate_headers(buffer, position):
        return decode_batch(buffer, start, header)
    message = f"{len(buffer) - position} bytes are not a whole record batch"
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def decode_all(buffer: Buffer) -> list[Record]:
    """Return the records of all batches, control batches included; an incomplete last batch is ignored.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    return [
        record
        for position, header in iterate_headers(buffer)
        for record in decode_batch(buffer, position, header)
    ]


def decode_batch(buffer: Buffer, position: int, header: BatchHeader) -> list[Record]:
    """Return the records of the batch at `position`, whose header was read before.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    body = batch_body(buffer, position, header)
    try:
        records, end = _decode_body(body, header)
    except IndexError as error:
        raise _corrupt(header, "a record is cut off") from error
    if end != len(body):
        raise _corrupt(header, f"{len(body) - end} bytes follow the last of {header.records_count} records")
    return records


def _corrupt(header: BatchHeader, what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {header.base_offset}: {what}")


def _decode_body(body: bytes, header: BatchHeader) -> tuple[list[Record], int]:
    records: list[Record] = []
    position = headers_count = 0
    for _ in range(header.records_count):
        record, position = _decode_record(body, position, header)
        records.append(record)
        headers_count += len(record.headers)
        if headers_count > RECORD_HEADERS_COUNT_MAX:
            raise _corrupt(header, f"more than {RECORD_HEADERS_COUNT_MAX} record headers")
    return records, position


def _decode_record(body: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    size_bytes, position = read_varint(body, position)
    end = position + size_bytes
    if size_bytes < 0 or end > len(body):
        raise _corrupt(header, f"a record of {size_bytes} bytes where {len(body) - position} are left")
    timestamp_delta, position = read_varint(body, position + 1)  # one byte of attributes, unused
    offset_delta, position = read_varint(body, position)
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise _corrupt(header, f"offset delta {offset_delta} is outside [0, {header.last_offset_delta}]")
    key, position = _read_bytes(body, position, end, header)
    value, position = _read_bytes(body, position, end, header)
    headers, position = read_headers(body, position, end, header)
    if position != end:
        raise _corrupt(header, f"a record ends {end - position} bytes before its length says")
    timestamp_ms = (
        header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta
    )
    return Record(header.base_offset + offset_delta, timestamp_ms, key, value, headers), end


def _read_bytes(body: bytes, position: int, end: int, header: BatchHeader) -> tuple[bytes | None, int]:
    size_bytes, position = read_varint(body, position)
    if size_bytes < 0:
        return None, position
    if size_bytes > end - position:
        raise _corrupt(header, f"a field of {size_bytes} bytes where {end - position} are left")
    return body[position : position + size_bytes], position + size_bytes


def read_headers(body: bytes, position: int, end: int, header: BatchHeader) -> tuple[RecordHeaders, int]:
    """Return the headers at `position` of a record that ends at `end`, and their end position.

    :raises IndexError: When the body ends within a number.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    count, position = read_varint(body, position)
    if count == 0:
        return (), position
    if not 0 < count * _HEADER_BYTES_MIN <= end - position or count > RECORD_HEADERS_COUNT_MAX:
        raise _corrupt(header, f"{count} record headers where {end - position} bytes are left")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end, header)
        if name is None:
            raise _corrupt(header, "a record header without a key")
        value, position = _read_bytes(body, position, end, header)
        headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers), position


def _encode_body(records: Sequence[Record], deltas: Iterable[int], base_timestamp: int) -> bytes:
    body = bytearray()
    for record, offset_delta in zip(records, deltas, strict=True):
        encoded = encode_record(record, record.timestamp_ms - base_timestamp, offset_delta)
        write_varint(body, len(encoded))
        body += encoded
    return bytes(body)


def encode_record(record: Record, timestamp_delta: int, offset_delta: int) -> bytearray:
    """Return the record without its length."""
    encoded = bytearray(1)
    write_varint(encoded, timestamp_delta)
    write_varint(encoded, offset_delta)
    _write_bytes(encoded, record.key)
    _write_bytes(encoded, record.value)
    write_varint(encoded, len(record.headers))
    for name, value in record.headers:
        _write_bytes(encoded, name.encode("utf-8"))
        _write_bytes(encoded, value)
    return encoded


def _write_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        output.append(1)  # the varint of -1
        return
    write_varint(output, len(value))
    output += value
