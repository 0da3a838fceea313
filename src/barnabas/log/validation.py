"""What a batch must be before a leader appends it: the checks, their order and codes of Apache Kafka."""

from enum import Enum

from crc32c import crc32c

from barnabas.log.log_config import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    HeaderFields,
    iterate_headers,
    read_header,
    stamp_append_time,
    stamp_create_time,
)
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_batch, recompress

_unpack_header = BATCH_HEADER.unpack_from
#: Attributes up to here say nothing but the codec.
_CODEC_MAX = int(Compression.ZSTD)

#: A batch of a few bytes can claim two thousand million records, and one of a few kilobytes hold tens of millions.
#: Whoever decodes it, now or when an offset is looked up by time, holds up the one thread that serves everybody.
RECORDS_COUNT_MAX = 1 << 19

#: So many records are named at most that were refused.
RECORD_ERRORS_COUNT_MAX = 1000

#: Kafka names at most this many bad records in the message; `record_errors` has them all.
_ERRORS_SHOWN = 3

#: Apache Kafka's words.
_INVALID_TIMESTAMP = "One or more records have been rejected due to invalid timestamp"


class AppendOrigin(Enum):
    """Who wrote a batch, and so how far it is trusted."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class InvalidRecords(KafkaError):
    """Single records of a batch are refused; the whole batch with them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[tuple[int, str], ...]) -> None:
        super().__init__(code, message)
        #: (index of the record in its batch, what is wrong with it)
        self.record_errors = record_errors


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def plain_header(records: memoryview, config: LogConfig, now_ms: int) -> HeaderFields | None:
    """The header of the one batch in `records` if it `is_plain`, else None."""
    if len(records) < BATCH_HEADER_BYTES:
        return None
    header: HeaderFields = _unpack_header(records)
    return header if is_plain(header, records, config, now_ms) else None


def is_plain(header: HeaderFields, records: memoryview, config: LogConfig, now_ms: int) -> bool:
    """Whether `records` is the batch that nearly every producer sends, whose header alone shows that it is right.

    Whatever is not must be looked at by `check_batch`, `needs_rewrite` and `rewrite`, be it good or bad.
    """
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_delta,
        _,
        max_timestamp,
        producer_id,
        _,
        sequence,
        count,
    ) = header
    size_bytes = length + BATCH_OVERHEAD_BYTES
    return not (
        base_offset
        or magic != MAGIC
        or size_bytes != len(records)
        or size_bytes > config.max_message_bytes
        or not 0 <= attributes <= _CODEC_MAX
        or not 0 < count <= RECORDS_COUNT_MAX
        or last_delta != count - 1
        or (producer_id > NO_PRODUCER_ID and sequence < 0)
        or max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or not config.keeps_batches
        or crc32c(records[CRC_START:]) != crc
    )


def own_header(records: memoryview, config: LogConfig) -> HeaderFields | None:
    """The header of a batch that a coordinator of this broker has made; None when the topic wants to change it.

    Its records are right: nobody else has had them.
    """
    if (
        config.stamps_append_time
        or config.target_codec is not None
        or len(records) > config.max_message_bytes
    ):
        return None
    header: HeaderFields = _unpack_header(records)
    return header


def check_batch(
    records: memoryview, config: LogConfig, origin: AppendOrigin
) -> tuple[memoryview, BatchHeader]:
    """The one batch in `records` without what is cut off behind it, and its header.

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
        raise _invalid(f"base offset {header.base_offset} in a produced batch: 0 is expected")
    if header.batch_length > config.max_message_bytes - BATCH_OVERHEAD_BYTES:
        message = f"batch of {header.size_bytes} bytes: max.message.bytes allows {config.max_message_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
    if crc32c(records[CRC_START:]) != header.crc:
        message = f"the batch does not match its CRC {header.crc:#010x}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
    if header.attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise _invalid(f"compression codec {header.attributes & COMPRESSION_MASK} does not exist")
    if origin is AppendOrigin.CLIENT:
        _check_client_header(header)
    return records, header


def _find_single_batch(records: memoryview) -> tuple[memoryview, BatchHeader]:
    """The slow way for what is not exactly one batch: find out why, or cut off the partial rest."""
    if len(records) > MAGIC_POSITION and records[MAGIC_POSITION] in (0, 1):
        raise _invalid(f"message format {records[MAGIC_POSITION]}: batches must have magic {MAGIC}")
    batches = iterate_headers(records)
    first = next(batches, None)
    if first is None:
        raise _invalid(f"{len(records)} bytes hold no whole record batch; exactly one is expected")
    if next(batches, None) is not None:
        raise _invalid("more than one record batch for a partition; exactly one is expected")
    return records[: first[1].size_bytes], first[1]


def _check_client_header(header: BatchHeader) -> None:
    count = header.records_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid(
            f"{count} records with a last offset delta of {header.last_offset_delta}: "
            f"a batch has at least one record and a delta of one less than their number"
        )
    if count > RECORDS_COUNT_MAX:
        raise _invalid(f"{count} records in a batch: {RECORDS_COUNT_MAX} are the most")
    if header.attributes & CONTROL_BIT:
        raise _invalid("control records are written by brokers only")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid(
            f"sequence {header.base_sequence} of producer {header.producer_id}: it must not be negative"
        )


def needs_rewrite(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether the header alone does not settle that the batch is kept as it came."""
    return (
        config.stamps_append_time
        or _needs_decoding(header, config, now_ms)
        or (config.target_codec is not None and config.target_codec != header.attributes & COMPRESSION_MASK)
    )


def _needs_decoding(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    if config.stamps_append_time:
        return config.is_compacted
    return (
        config.inspects_records
        or header.max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or bool(header.attributes & LOG_APPEND_TIME_BIT)
    )


def rewrite(
    records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
) -> tuple[memoryview, BatchHeader]:
    """Check the single records where the topic demands it, then stamp and recompress the batch.

    :raises InvalidRecords: INVALID_TIMESTAMP or INVALID_RECORD.
    :raises KafkaError: INVALID_RECORD for records that cannot be decoded; MESSAGE_TOO_LARGE when the
        topic's codec makes the batch too large.
    """
    if _needs_decoding(header, config, now_ms):
        decoded = _decode(records, header)
        _check_records(decoded, header, config, now_ms)
        if not config.stamps_append_time:
            largest_ms = max(record.timestamp_ms for record in decoded)
            header = stamp_create_time(records, 0, header, largest_ms)
    if config.stamps_append_time:
        _check_append_time(header)
        header = stamp_append_time(records, 0, header, now_ms)
    codec = config.target_codec
    if codec is not None and codec != header.attributes & COMPRESSION_MASK and not header.is_control:
        return _recompress(records, header, codec, config)
    return records, header


def _decode(records: memoryview, header: BatchHeader) -> list[Record]:
    try:
        return decode_batch(records, 0, header)
    except KafkaError as error:
        # The CRC was right, so the bytes came as they were sent: to send them again cannot help.
        raise _invalid(error.message) from error


def _check_append_time(header: BatchHeader) -> None:
    if header.attributes & LOG_APPEND_TIME_BIT:
        what = "the timestamp type LogAppendTime is set by the broker, not by producers"
        errors = tuple((index, what) for index in range(min(header.records_count, RECORD_ERRORS_COUNT_MAX)))
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, _INVALID_TIMESTAMP, errors)


def _check_records(records: list[Record], header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(records):
        if config.is_compacted and record.key is None:
            errors.append((index, "a record without a key: compacted topics need one"))
        elif config.stamps_append_time:
            continue
        elif record.timestamp_ms == NO_TIMESTAMP:
            if header.is_log_append_time:
                code = ErrorCode.INVALID_TIMESTAMP
                errors.append((index, "the timestamp type LogAppendTime is set by the broker"))
        elif not earliest_ms <= record.timestamp_ms <= latest_ms:
            code = ErrorCode.INVALID_TIMESTAMP
            what = (
                f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. "
                f"The timestamp should be within [{earliest_ms}, {latest_ms}]"
            )
            errors.append((index, what))
    if code is ErrorCode.INVALID_TIMESTAMP:
        raise InvalidRecords(code, _INVALID_TIMESTAMP, tuple(errors[:RECORD_ERRORS_COUNT_MAX]))
    if errors:
        shown = "; ".join(f"record {index}: {what}" for index, what in errors[:_ERRORS_SHOWN])
        message = f"{len(errors)} of {len(records)} records are refused: {shown}"
        raise InvalidRecords(code, message, tuple(errors[:RECORD_ERRORS_COUNT_MAX]))


def _recompress(
    records: memoryview, header: BatchHeader, codec: Compression, config: LogConfig
) -> tuple[memoryview, BatchHeader]:
    try:
        packed = memoryview(recompress(records, 0, header, codec, config.target_level))
    except KafkaError as error:
        raise _invalid(error.message) from error
    if len(packed) > config.max_message_bytes:
        message = (
            f"batch of {len(packed)} bytes as {codec.name.lower()}: "
            f"max.message.bytes allows {config.max_message_bytes}"
        )
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
    return packed, read_header(packed)
