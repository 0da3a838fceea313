"""Producer ids in the log of a transaction coordinator that was found on a disk, which must not be allocated again."""

from barnabas.log.partition_log import PartitionLog
from barnabas.wire.coordinator_records.serde import TRANSACTION_RECORDS, UnknownRecord
from barnabas.wire.coordinator_records.transaction_log import TransactionLogValue
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.record import decode_batch

_SLICE_BYTES = 1 << 20
_NONE = -1


def largest_producer_id(log: PartitionLog) -> int:
    """Return the largest present or next producer id of a transactional id; -1 if there is none. Reads the whole log.

    :raises KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
    :raises DecodeError: If a record cannot be read.
    """
    largest, offset = _NONE, log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _SLICE_BYTES, log.log_end_offset, min_one_batch=True).data
        for position, header in iterate_headers(data):
            offset = header.next_offset
            for record in () if header.is_control else decode_batch(data, position, header):
                decoded = TRANSACTION_RECORDS.decode(record.key or b"", record.value)
                if not isinstance(decoded, UnknownRecord) and isinstance(decoded.value, TransactionLogValue):
                    largest = max(largest, decoded.value.producer_id, decoded.value.next_producer_id)
    return largest
