"""Control records, which brokers write into logs, in particular transaction markers (KIP-98)."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    CONTROL_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    seal,
)
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.record import decode_batch

#: A control record's key: version, type.
_KEY = Struct(">hh")
#: The value of an end-of-transaction marker: version, coordinator epoch.
_MARKER = Struct(">hi")
_VERSION = 0
#: The record of a marker's batch: length, attributes and deltas, key and value with their lengths, no headers.
_RECORD = Struct(">5B hh B hi B")
_RECORD_START = (
    2 * (_RECORD.size - 1),
    0,
    0,
    0,
    2 * _KEY.size,
)  # lengths are zigzag varints: twice the number
_VALUE_BYTES = 2 * _MARKER.size


class ControlType(IntEnum):
    """The type of a control record; those from LEADER_CHANGE on occur only in KRaft logs."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """A transaction marker: it ends a producer's transaction in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    timestamp_ms: int

    @property
    def control_type(self) -> ControlType:
        """The type of its control record."""
        return ControlType.COMMIT if self.commit else ControlType.ABORT


def control_type(key: bytes | None) -> ControlType:
    """Return the type of the record with this key; UNKNOWN for types of a later Kafka and for damage."""
    if key is None or len(key) < _KEY.size:
        return ControlType.UNKNOWN
    version, number = _KEY.unpack_from(key)
    return ControlType(number) if version >= _VERSION and number in _NUMBERS else ControlType.UNKNOWN


_NUMBERS = frozenset(ControlType)


def encode_end_marker(marker: EndTransactionMarker) -> bytearray:
    """Return the control batch that ends a transaction."""
    batch = bytearray(BATCH_HEADER_BYTES + _RECORD.size)
    header = BatchHeader(
        base_offset=0,
        batch_length=len(batch) - BATCH_OVERHEAD_BYTES,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        last_offset_delta=0,
        base_timestamp=marker.timestamp_ms,
        max_timestamp=marker.timestamp_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        base_sequence=NO_SEQUENCE,
        records_count=1,
    )
    BATCH_HEADER.pack_into(batch, 0, *header)
    key, value = (_VERSION, marker.control_type), (_VERSION, marker.coordinator_epoch)
    _RECORD.pack_into(batch, BATCH_HEADER_BYTES, *_RECORD_START, *key, _VALUE_BYTES, *value, 0)
    seal(batch, 0)
    return batch


def read_end_marker(buffer: Buffer, position: int, header: BatchHeader) -> EndTransactionMarker | None:
    """Return the marker in the control batch at `position`; None for another control record, or a compacted batch.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    for record in decode_batch(buffer, position, header):
        what = control_type(record.key)
        value = record.value or b""
        if what in (ControlType.ABORT, ControlType.COMMIT) and len(value) >= _MARKER.size:
            _, coordinator_epoch = _MARKER.unpack_from(value)
            return EndTransactionMarker(
                header.producer_id,
                header.producer_epoch,
                coordinator_epoch,
                what is ControlType.COMMIT,
                record.timestamp_ms,
            )
    return None
