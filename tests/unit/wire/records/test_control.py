import struct

import pytest

from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import crc_matches, read_header
from barnabas.wire.records.control import (
    ControlType,
    EndTransactionMarker,
    control_type,
    encode_end_marker,
    read_end_marker,
)
from barnabas.wire.records.record import Record, encode_batch

COMMIT = EndTransactionMarker(9, 3, 7, True, 1_000)
ABORT = EndTransactionMarker(10, 32_767, -1, False, 2_000)


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
def test_a_transaction_marker_round_trips(marker: EndTransactionMarker) -> None:
    batch = encode_end_marker(marker)
    header = read_header(batch)
    assert read_end_marker(batch, 0, header) == marker
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.records_count, header.max_timestamp) == (1, marker.timestamp_ms)
    assert crc_matches(batch, 0, header)


def test_a_transaction_marker_equals_kafkas_byte_for_byte() -> None:
    record = "20 00 00 00 08 0000 0001 0c 0000 00000007 00"
    assert bytes(encode_end_marker(COMMIT)[61:]) == bytes.fromhex(record)


@pytest.mark.parametrize("known", [each for each in ControlType if each is not ControlType.UNKNOWN])
def test_each_type_of_control_record_is_recognized(known: ControlType) -> None:
    assert control_type(struct.pack(">hh", 0, known)) is known
    assert control_type(struct.pack(">hhi", 1, known, 5)) is known


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\0\0\0\x09", b"\xff\xff\0\0", b"\0\0\xff\xff"])
def test_other_keys_are_unknown(key: bytes | None) -> None:
    assert control_type(key) is ControlType.UNKNOWN


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">hh", 0, ControlType.LEADER_CHANGE), struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", 0, ControlType.COMMIT), b"\0\0"),
        (struct.pack(">hh", 0, ControlType.ABORT), None),
        (None, None),
    ],
)
def test_other_batches_are_not_transaction_markers(key: bytes | None, value: bytes | None) -> None:
    batch = encode_batch([Record(0, 5, key, value)], control=True)
    assert read_end_marker(batch, 0, read_header(batch)) is None


def test_a_damaged_control_batch_is_rejected() -> None:
    batch = encode_end_marker(COMMIT)
    batch[61] = 0x7E
    with pytest.raises(KafkaError):
        read_end_marker(batch, 0, read_header(batch))
