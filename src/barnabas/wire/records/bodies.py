"""Common parts of reading columns: positions of records, and errors."""

from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader

#: The values of one-byte varints by their byte.
ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


class Body(NamedTuple):
    """The position of a batch's decompressed records."""

    header: BatchHeader
    position: int
    end: int


def corrupt(header: BatchHeader, what: str) -> KafkaError:
    """The error for a batch whose records contradict its header."""
    return corrupt_at(header.base_offset, what)


def corrupt_at(base_offset: int, what: str) -> KafkaError:
    """The error for the batch at that offset."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {base_offset}: {what}")
