"""Common parts of reading columns: positions of records, and errors."""

from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.walk import Problem

_WHAT = {
    Problem.CUT_OFF: "a record is cut off",
    Problem.BYTES_BEHIND: "bytes follow the last record",
    Problem.RECORD_SIZE: "the fields of a record are longer than the record",
    Problem.OFFSET_DELTA: "an offset delta is outside the batch",
    Problem.TIMESTAMP: "a timestamp of more than 64 bits",
    Problem.OFFSET: "offsets of more than 64 bits",
}


class Body(NamedTuple):
    """The position of a batch's decompressed records."""

    header: BatchHeader
    position: int
    end: int


def corrupt(header: BatchHeader, what: str) -> KafkaError:
    """Return the error for a batch whose records contradict its header."""
    return corrupt_at(header.base_offset, what)


def corrupt_at(base_offset: int, what: str) -> KafkaError:
    """Return the error for the batch at that offset."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {base_offset}: {what}")


def impossible_count(base_offset: int, records_count: int) -> KafkaError:
    """Return the error for a batch with fewer records than none, or more than its bytes can hold."""
    return corrupt_at(base_offset, f"its bytes cannot hold {records_count} records")


def corrupt_records(base_offset: int, problem: int) -> KafkaError:
    """Return the error for a batch in whose records a kernel of `walk` has found a problem."""
    return corrupt_at(base_offset, _WHAT[Problem(problem)])
