"""Checks of a Produce request before its batches are validated."""

from barnabas.replication.partition import ALL_REPLICAS, Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import COMPRESSION_MASK
from barnabas.wire.records.compression import Compression

NO_RESPONSE = 0  #: acks of a producer that expects no response
FIRST_VERSION_WITH_ZSTD = 7

#: Position of the low byte of a batch's attributes, and its bit that marks transactional batches.
ATTRIBUTES_POSITION, TRANSACTIONAL_BIT = 22, 0x10


def check_request(version: int, partition: Partition, acks: int, records: memoryview | None) -> memoryview:
    """Return the records if the request may append them."""
    if records is None:
        message = f"The request has no records for {partition.topic}-{partition.index}."
        raise KafkaError(ErrorCode.INVALID_RECORD, message)
    if version < FIRST_VERSION_WITH_ZSTD and _codec(records) == Compression.ZSTD:
        message = f"Produce version {version} does not support zstd: use version {FIRST_VERSION_WITH_ZSTD}."
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    if acks not in (1, ALL_REPLICAS, NO_RESPONSE):
        message = f"acks={acks} is invalid: it must be -1 (all), 0 (none) or 1 (leader)."
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, message)
    return records


def _codec(records: memoryview) -> int:
    """Return the codec of the first batch; 0 if there is no batch."""
    return records[ATTRIBUTES_POSITION] & COMPRESSION_MASK if len(records) > ATTRIBUTES_POSITION else 0
