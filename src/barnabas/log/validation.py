"""Validates batches before a leader appends them, in Apache Kafka's order and with its error codes.

A produced batch is checked by `validate_inline` on the event loop, or, where that returns None, by `validate` in a
worker thread. Either returns a `ValidatedBatch`, which `PartitionLog.append_as_leader` appends.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from crc32c import crc32c

from barnabas.log.log_config import LogConfig
from barnabas.log.record_validation import (
    INT64_MAX,
    INT64_MIN,
    Walk,
    check_records,
    check_timestamp_type,
    invalid,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    BatchHeader,
    HeaderFields,
    iterate_headers,
    read_header,
    stamp_append_time,
    stamp_create_time,
)
from barnabas.wire.records.compression import (
    Buffer,
    Compression,
    UnpackedTooLarge,
    check_frame,
    decompress_into,
)
from barnabas.wire.records.record import RECORD_HEADERS_COUNT_MAX, batch_body, recompress
from barnabas.wire.records.walk import COMPILED, Problem, walk, walk_unlocked

_unpack_header = BATCH_HEADER.unpack_from
#: Attributes up to this value contain only the codec.
_CODEC_MAX = int(Compression.ZSTD)

#: Records per batch: a batch of a few kilobytes can hold tens of millions, and readers create an object for each.
RECORDS_COUNT_MAX = 1 << 19

# Limits of what the event loop validates itself, so that it takes at most about 5 ms for any input. Without compiled
# code a walk over the records takes a hundred times as long.

#: Largest batch by codec. Gzip and snappy are slow for empty members and blocks.
INLINE_BYTES_MAX = (1 << 20, 1 << 14, 1 << 14, 1 << 18, 1 << 18) if COMPILED else (1 << 14,) * 5
#: The largest records section after decompression.
_UNPACKED_INLINE_BYTES_MAX = 1 << 18 if COMPILED else 1 << 14
#: The largest records section that is recompressed with another codec.
_RECOMPRESSED_INLINE_BYTES_MAX = 1 << 14

#: Buffer for decompression; used by the event loop only, never by other threads.
_SCRATCH = memoryview(bytearray(_UNPACKED_INLINE_BYTES_MAX))

#: Position of the low byte of a batch's attributes, which contains the codec.
_ATTRIBUTES_POSITION = 22


class AppendOrigin(Enum):
    """The writer of a batch; only a client's batches are fully validated."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class ValidatedBatch(NamedTuple):
    """One whole batch that may be appended, and its header with the correct largest timestamp and codec."""

    header: HeaderFields
    records: memoryview


def header_if_valid(records: memoryview, config: LogConfig, now_ms: int) -> HeaderFields | None:
    """Return the header if `records` is one valid batch that is stored unchanged, as nearly every producer sends it.

    None for other batches, valid or not, and for those that take long to check: `validate_inline` handles them.
    """
    if len(records) < BATCH_HEADER_BYTES:
        return None
    header: HeaderFields = _unpack_header(records)
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        _,
        sequence,
        count,
    ) = header
    size_bytes = length + BATCH_OVERHEAD_BYTES
    if (
        base_offset
        or magic != MAGIC
        or size_bytes != len(records)
        or size_bytes > config.max_message_bytes
        or not 0 <= attributes <= _CODEC_MAX
        or size_bytes > INLINE_BYTES_MAX[attributes]
        or not 0 < count <= RECORDS_COUNT_MAX
        or last_delta != count - 1
        or (producer_id > NO_PRODUCER_ID and sequence < 0)
        or max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or not config.keeps_batches
        or crc32c(records[CRC_START:]) != crc
    ):
        return None
    body, start = records, BATCH_HEADER_BYTES
    if attributes:
        unpacked = _unpack_inline(attributes, records)
        if unpacked is None:
            return None
        body, start = unpacked, 0
    problem, _, _, _, largest_ms = walk(
        body, start, 0, count, base_timestamp, INT64_MIN, INT64_MAX, False, RECORD_HEADERS_COUNT_MAX
    )
    return header if problem == Problem.NONE and largest_ms == max_timestamp else None


def _unpack_inline(codec: int, records: memoryview) -> memoryview | None:
    """Return the decompressed records of the batch; they are valid until the next call.

    None if decompression may take long or fails: `validate` then determines the error.
    """
    packed, compression = records[BATCH_HEADER_BYTES:], Compression(codec)
    try:
        size_bytes = decompress_into(compression, packed, _SCRATCH)
        check_frame(compression, packed)
    except KafkaError:
        return None
    return _SCRATCH[:size_bytes]


def coordinator_header(records: memoryview, config: LogConfig) -> HeaderFields | None:
    """Return the header of a batch from a coordinator of this broker; None if the topic's configs require changes.

    The records are not validated, because this broker wrote them.
    """
    codec = config.target_codec
    if (
        config.stamps_append_time
        or len(records) > config.max_message_bytes
        or (codec is not None and codec != records[_ATTRIBUTES_POSITION] & COMPRESSION_MASK)
    ):
        return None
    header: HeaderFields = _unpack_header(records)
    return header


def check_batch(
    records: memoryview, config: LogConfig, origin: AppendOrigin
) -> tuple[memoryview, BatchHeader]:
    """Return the one batch in `records`, without a partial batch after it, and its header.

    :raises KafkaError: INVALID_RECORD, MESSAGE_TOO_LARGE or CORRUPT_MESSAGE.
    """
    size_bytes = len(records)
    if size_bytes < BATCH_HEADER_BYTES:
        records, header = _find_single_batch(records)
    else:
        header = read_header(records)
        if header.batch_length != size_bytes - BATCH_OVERHEAD_BYTES or header.magic != MAGIC:
            records, header = _find_single_batch(records)
    if header.base_offset != 0 and origin is AppendOrigin.CLIENT:
        raise invalid(f"base offset {header.base_offset} of a produced batch: it must be 0")
    if header.batch_length > config.max_message_bytes - BATCH_OVERHEAD_BYTES:
        message = f"batch of {header.size_bytes} bytes: max.message.bytes allows {config.max_message_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
    if crc32c(records[CRC_START:]) != header.crc:
        message = f"the batch does not match its CRC {header.crc:#010x}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
    if header.attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise invalid(f"compression codec {header.attributes & COMPRESSION_MASK} does not exist")
    if origin is AppendOrigin.CLIENT:
        _check_client_header(header)
    return records, header


def _find_single_batch(records: memoryview) -> tuple[memoryview, BatchHeader]:
    """Handle records that are not exactly one batch: raise the error, or cut off a partial batch at the end."""
    if len(records) > MAGIC_POSITION and records[MAGIC_POSITION] in (0, 1):
        raise invalid(f"message format {records[MAGIC_POSITION]}: batches must have magic {MAGIC}")
    batches = iterate_headers(records)
    first = next(batches, None)
    if first is None:
        raise invalid(f"{len(records)} bytes hold no whole record batch; exactly one is expected")
    if next(batches, None) is not None:
        raise invalid("more than one record batch for a partition; exactly one is expected")
    return records[: first[1].size_bytes], first[1]


def _check_client_header(header: BatchHeader) -> None:
    count = header.records_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise invalid(
            f"{count} records with a last offset delta of {header.last_offset_delta}: "
            f"a batch has at least one record and a delta of one less than their number"
        )
    if count > RECORDS_COUNT_MAX:
        raise invalid(f"{count} records in a batch: at most {RECORDS_COUNT_MAX} are allowed")
    if header.attributes & CONTROL_BIT:
        raise invalid("only brokers may write control records")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise invalid(
            f"sequence {header.base_sequence} of producer {header.producer_id}: it must not be negative"
        )


# Produced batches


def is_costly(records: Buffer, config: LogConfig) -> bool:
    """Whether validating these records may block the event loop for long, judging by size and codec alone.

    False for a small batch that decompresses to a large one: `validate_inline` detects it and stops.
    """
    size_bytes = len(records)
    codec = records[_ATTRIBUTES_POSITION] & COMPRESSION_MASK if size_bytes > _ATTRIBUTES_POSITION else 0
    if codec > _CODEC_MAX:
        return False
    recompressed = config.target_codec is not None and config.target_codec != codec
    return size_bytes > INLINE_BYTES_MAX[codec] or (
        recompressed and size_bytes > _RECOMPRESSED_INLINE_BYTES_MAX
    )


def validate_inline(records: memoryview, config: LogConfig, now_ms: int) -> ValidatedBatch | None:
    """Validate one produced batch within the time allowed on the event loop, and correct its header where needed.

    Call it on the event loop only.

    :return: None if validation would take longer: then run `validate` in a worker thread, on a copy of the records
        because their buffer is reused.
    :raises KafkaError: As `validate`.
    """
    unchanged_header = header_if_valid(records, config, now_ms)
    if unchanged_header is not None:
        return ValidatedBatch(unchanged_header, records)
    if is_costly(records, config):
        return None
    records, header = check_batch(records, config, AppendOrigin.CLIENT)
    codec = header.attributes & COMPRESSION_MASK
    body = _unpack_inline(codec, records) if codec else records[BATCH_HEADER_BYTES:]
    if body is None or (_recompresses(header, config) and len(body) > _RECOMPRESSED_INLINE_BYTES_MAX):
        return None
    return _check_and_correct(records, header, body, config, now_ms, walk)


def validate(records: memoryview, config: LogConfig, now_ms: int) -> ValidatedBatch:
    """Validate one produced batch, however long it takes, and correct its header where needed. For worker threads.

    The GIL is released while the records are decompressed, walked (by compiled code) or compressed.

    :raises InvalidRecords: INVALID_TIMESTAMP or INVALID_RECORD for single records.
    :raises KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, or MESSAGE_TOO_LARGE (also if the records decompress to more
        than a request may contain, or if the topic's codec makes them too large).
    """
    records, header = check_batch(records, config, AppendOrigin.CLIENT)
    codec = Compression(header.attributes & COMPRESSION_MASK)
    packed = records[BATCH_HEADER_BYTES:]
    if codec is Compression.NONE:
        return _check_and_correct(records, header, packed, config, now_ms, walk_unlocked)
    with _unpacked(codec, packed, config.unpacked_bytes_max) as body:
        return _check_and_correct(records, header, body, config, now_ms, walk_unlocked)


@contextmanager
def _unpacked(codec: Compression, packed: memoryview, size_max_bytes: int) -> Iterator[memoryview]:
    # An anonymous map uses only the pages that are written, so a large limit costs nothing.
    output = mmap.mmap(-1, size_max_bytes)
    try:
        size_bytes = decompress_into(codec, packed, output)
        check_frame(codec, packed)
    except UnpackedTooLarge as error:
        message = f"{error.message}: this is the limit for uncompressed records (socket.request.max.bytes)"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message) from error
    except KafkaError as error:
        # The CRC was correct, so the bytes arrived as sent: a retry cannot help.
        raise invalid(error.message) from error
    with memoryview(output)[:size_bytes] as body:
        yield body


def _check_and_correct(
    records: memoryview, header: BatchHeader, body: memoryview, config: LogConfig, now_ms: int, walk: Walk
) -> ValidatedBatch:
    largest_ms = check_records(body, header, config, now_ms, walk)
    check_timestamp_type(header, config, now_ms)
    if config.stamps_append_time:
        header = stamp_append_time(records, 0, header, now_ms)
    else:
        header = stamp_create_time(records, 0, header, largest_ms)
    if _recompresses(header, config):
        return _recompressed(header, body, config)
    return ValidatedBatch(header, records)


def _recompresses(header: BatchHeader, config: LogConfig) -> bool:
    codec = config.target_codec
    return codec is not None and codec != header.attributes & COMPRESSION_MASK and not header.is_control


def _recompressed(header: BatchHeader, body: Buffer, config: LogConfig) -> ValidatedBatch:
    codec = config.target_codec
    assert codec is not None
    packed = memoryview(recompress(header, body, codec, config.target_level))
    if len(packed) > config.max_message_bytes:
        message = (
            f"batch of {len(packed)} bytes as {codec.name.lower()}: "
            f"max.message.bytes allows {config.max_message_bytes}"
        )
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
    return ValidatedBatch(read_header(packed), packed)


# Batches of this broker's coordinators


def prepare_coordinator_batch(records: memoryview, config: LogConfig, now_ms: int) -> ValidatedBatch:
    """Convert a batch from a coordinator of this broker as the topic's configs require, without validating its records.

    :raises KafkaError: MESSAGE_TOO_LARGE.
    """
    unchanged_header = coordinator_header(records, config)
    if unchanged_header is not None:
        return ValidatedBatch(unchanged_header, records)
    records, header = check_batch(records, config, AppendOrigin.COORDINATOR)
    if config.stamps_append_time:
        header = stamp_append_time(records, 0, header, now_ms)
    if _recompresses(header, config):
        return _recompressed(header, batch_body(records, 0, header), config)
    return ValidatedBatch(header, records)
