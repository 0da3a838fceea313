"""Validates the records of a produced batch as Kafka's LogValidator does, without creating objects for records."""

from collections.abc import Callable
from typing import TypeAlias

from barnabas.base.buffers import Buffer
from barnabas.log.log_config import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader
from barnabas.wire.records.record import RECORD_HEADERS_COUNT_MAX
from barnabas.wire.records.walk import Problem, WalkResult

INT64_MAX = (1 << 63) - 1
INT64_MIN = -1 - INT64_MAX

#: Largest number of rejected records that one error lists.
RECORD_ERRORS_COUNT_MAX = 1000

#: Kafka names at most this many bad records in the message; `record_errors` contains them all.
_ERRORS_SHOWN = 3

#: `walk` or `walk_unlocked`.
Walk: TypeAlias = Callable[[Buffer, int, int, int, int, int, int, bool, int], WalkResult]

#: The message is Apache Kafka's.
_INVALID_TIMESTAMP = "One or more records have been rejected due to invalid timestamp"

_MALFORMED = {
    Problem.CUT_OFF: "a field is truncated, or its length is not valid",
    Problem.BYTES_BEHIND: "there are bytes after the last record",
    Problem.RECORD_SIZE: "its fields are shorter than its length",
    Problem.OFFSET_DELTA: "its offset delta is not its index in the batch",
    Problem.TIMESTAMP: "its timestamp has more than 64 bits",
    Problem.HEADERS_COUNT: "its number of headers is negative, or larger than its bytes can hold",
    Problem.HEADER_WITHOUT_KEY: "one of its headers has no key",
    Problem.TOO_MANY_HEADERS: f"the batch has more than {RECORD_HEADERS_COUNT_MAX} record headers",
}


class InvalidRecords(KafkaError):
    """Some records of a batch are not valid, so the whole batch is rejected."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[tuple[int, str], ...]) -> None:
        super().__init__(code, message)
        #: (index of the record in its batch, error message)
        self.record_errors = record_errors


def invalid(message: str) -> KafkaError:
    """Return the error for a batch that is not valid, so that sending it again cannot succeed."""
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def check_records(body: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, walk: Walk) -> int:
    """Return the largest timestamp of the decompressed records in `body`; at least -1.

    :raises InvalidRecords: INVALID_RECORD or INVALID_TIMESTAMP for records that the topic does not accept.
    :raises KafkaError: INVALID_RECORD if the bytes are not the records that the header describes.
    """
    earliest_ms, latest_ms = _timestamp_bounds(config, now_ms)

    def walk_from(position: int, index: int, *, checked: bool) -> WalkResult:
        return walk(
            body,
            position,
            index,
            header.records_count,
            header.base_timestamp,
            earliest_ms if checked else INT64_MIN,
            latest_ms if checked else INT64_MAX,
            config.is_compacted and checked,
            RECORD_HEADERS_COUNT_MAX,
        )

    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    position = next_index = 0
    while True:
        result = walk_from(position, next_index, checked=len(errors) < RECORD_ERRORS_COUNT_MAX)
        problem, index, position, timestamp_ms, largest_ms = result
        if problem == Problem.NONE:
            break
        if problem < Problem.NO_KEY:
            raise invalid(f"record {index} of {header.records_count}: {_MALFORMED[Problem(problem)]}")
        if problem == Problem.NO_KEY:
            errors.append((index, "the record has no key, which compacted topics require"))
        else:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, _out_of_range(timestamp_ms, index, earliest_ms, latest_ms)))
        next_index = index + 1
    if errors:
        raise _rejected(code, header, errors)
    return largest_ms


def check_timestamp_type(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Reject a producer's LogAppendTime where Kafka does: if the topic sets it, or if the timestamp is out of range.

    :raises InvalidRecords: INVALID_TIMESTAMP.
    """
    if not header.is_log_append_time:
        return
    earliest_ms, latest_ms = _timestamp_bounds(config, now_ms)
    claimed_ms = header.max_timestamp
    if config.stamps_append_time or claimed_ms == NO_TIMESTAMP:
        message = "the timestamp type LogAppendTime is set by the broker, not by producers"
    elif not earliest_ms <= claimed_ms <= latest_ms:
        message = _out_of_range(claimed_ms, 0, earliest_ms, latest_ms)
    else:
        return
    errors = tuple((index, message) for index in range(min(header.records_count, RECORD_ERRORS_COUNT_MAX)))
    raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, _INVALID_TIMESTAMP, errors)


def _out_of_range(timestamp_ms: int, offset: int, earliest_ms: int, latest_ms: int) -> str:
    return (
        f"Timestamp {timestamp_ms} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{earliest_ms}, {latest_ms}]"
    )


def _timestamp_bounds(config: LogConfig, now_ms: int) -> tuple[int, int]:
    if config.stamps_append_time:
        return INT64_MIN, INT64_MAX
    return (
        max(INT64_MIN, now_ms - config.message_timestamp_before_max_ms),
        min(INT64_MAX, now_ms + config.message_timestamp_after_max_ms),
    )


def _rejected(code: ErrorCode, header: BatchHeader, errors: list[tuple[int, str]]) -> InvalidRecords:
    if code is ErrorCode.INVALID_TIMESTAMP:
        return InvalidRecords(code, _INVALID_TIMESTAMP, tuple(errors))
    details = "; ".join(f"record {index}: {error}" for index, error in errors[:_ERRORS_SHOWN])
    count = f"{len(errors)}" if len(errors) < RECORD_ERRORS_COUNT_MAX else f"At least {len(errors)}"
    message = f"{count} of {header.records_count} records are not valid: {details}"
    return InvalidRecords(code, message, tuple(errors))
