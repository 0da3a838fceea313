"""Control records: what brokers write among the records, above all the end of a transaction (KIP-98)."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.record import Record, decode_batch, encode_batch

#: A control record's key: version, type.
_KEY = Struct(">hh")
#: The value of an end-of-transaction marker: version, coordinator epoch.
_MARKER = Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """What a control record says; those from LEADER_CHANGE on stand in the logs of KRaft alone."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    timestamp_ms: int

    @property
    def control_type(self) -> ControlType:
        """What its record says."""
        return ControlType.COMMIT if self.commit else ControlType.ABORT


def control_type(key: bytes | None) -> ControlType:
    """What the record with this key says; UNKNOWN for what a later Kafka may write, and for damage."""
    if key is None or len(key) < _KEY.size:
        return ControlType.UNKNOWN
    version, number = _KEY.unpack_from(key)
    return ControlType(number) if version >= _VERSION and number in _NUMBERS else ControlType.UNKNOWN


_NUMBERS = frozenset(ControlType)


def encode_end_marker(marker: EndMarker) -> bytearray:
    """The control batch that ends a transaction."""
    key = _KEY.pack(_VERSION, marker.control_type)
    value = _MARKER.pack(_VERSION, marker.coordinator_epoch)
    return encode_batch(
        [Record(0, marker.timestamp_ms, key, value)],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def read_end_marker(buffer: Buffer, position: int, header: BatchHeader) -> EndMarker | None:
    """The marker in the control batch at `position`; None when it is another one, or compaction emptied it.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    for record in decode_batch(buffer, position, header):
        what = control_type(record.key)
        value = record.value or b""
        if what in (ControlType.ABORT, ControlType.COMMIT) and len(value) >= _MARKER.size:
            _, coordinator_epoch = _MARKER.unpack_from(value)
            return EndMarker(
                header.producer_id,
                header.producer_epoch,
                coordinator_epoch,
                what is ControlType.COMMIT,
                record.timestamp_ms,
            )
    return None
