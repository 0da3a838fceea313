"""Decoding of fetched data into visible records. No IO."""

from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import AbortedTransaction, PartitionData
from barnabas.wire.records.batch import BatchHeader, crc_matches, iterate_headers
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.control import ControlType, control_type
from barnabas.wire.records.record import RecordHeaders, decode_batch


class ConsumedRecord(NamedTuple):
    """A record and its position; `timestamp_ms` is -1 if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders


class Fetched(NamedTuple):
    """Visible records of a partition, and the next offset to fetch."""

    records: list[ConsumedRecord]
    next_offset: int


def read_fetched(
    tp: TopicPartition,
    data: PartitionData,
    position: int,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> Fetched:
    """Return the records from `position` on, without control records and, with read_committed, without aborted ones.

    :raises KafkaError: CORRUPT_MESSAGE, with partition and offset.
    """
    buffer = data.records or b""
    aborted = _Aborted(data.aborted_transactions or [] if isolation is Isolation.READ_COMMITTED else [])
    records: list[ConsumedRecord] = []
    for start, header in iterate_headers(buffer):
        if header.next_offset <= position:
            continue
        if not crc_matches(buffer, start, header):
            message = f"batch at offset {header.base_offset} of partition {tp} fails its checksum"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        if aborted.admits(buffer, start, header):
            records += _records(tp, buffer, start, header, position)
        position = header.next_offset
    return Fetched(records, position)


def _records(
    tp: TopicPartition, buffer: Buffer, start: int, header: BatchHeader, position: int
) -> list[ConsumedRecord]:
    topic, partition = tp
    return [
        ConsumedRecord(topic, partition, offset, timestamp_ms, key, value, headers)
        for offset, timestamp_ms, key, value, headers in decode_batch(buffer, start, header)
        if offset >= position
    ]


class _Aborted:
    """Tracks the aborted transactions of producers over batches (KIP-98)."""

    def __init__(self, transactions: list[AbortedTransaction]) -> None:
        self._coming = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
        self._producer_ids: set[int] = set()

    def admits(self, buffer: Buffer, start: int, header: BatchHeader) -> bool:
        """Return whether the batch has visible records; batches are passed in order."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._producer_ids.add(self._coming.pop().producer_id)
        if header.is_control:
            if _is_abort(buffer, start, header):
                self._producer_ids.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._producer_ids)


def _is_abort(buffer: Buffer, start: int, header: BatchHeader) -> bool:
    for record in decode_batch(buffer, start, header):
        return control_type(record.key) is ControlType.ABORT
    return False
