"""What the ways of reading columns share: where records lie, and what is said of those that are none."""

from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader

#: What the one-byte varints mean, by their byte.
ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


class Body(NamedTuple):
    """Where the unpacked records of a batch lie."""

    header: BatchHeader
    position: int
    end: int


def corrupt(header: BatchHeader, what: str) -> KafkaError:
    """The error for a batch that does not hold what its header says."""
    return corrupt_at(header.base_offset, what)


def corrupt_at(base_offset: int, what: str) -> KafkaError:
    """The error for the batch at that offset."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {base_offset}: {what}")
