import struct

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.completed_fetch import read_fetched
from barnabas.wire.errors import KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import AbortedTransaction, PartitionData
from barnabas.wire.records.record import Record, encode_batch

TP = TopicPartition("t", 3)
COMMITTED = Isolation.READ_COMMITTED


def batch(base_offset: int, *values: bytes, producer_id: int = -1, transactional: bool = False) -> bytes:
    records = [Record(0, 1_000 + base_offset, None, value) for value in values]
    return bytes(
        encode_batch(records, base_offset=base_offset, producer_id=producer_id, transactional=transactional)
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    record = Record(0, 0, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0))
    return bytes(
        encode_batch([record], base_offset=offset, producer_id=producer_id, transactional=True, control=True)
    )


def values(data: PartitionData, position: int = 0, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> list:
    return [record.value for record in read_fetched(TP, data, position, isolation).records]


def test_records_have_their_positions() -> None:
    fetched = read_fetched(TP, PartitionData(records=batch(7, b"a", b"b")), 7)
    assert fetched.records[1] == ("t", 3, 8, 1_007, None, b"b", ())
    assert fetched.next_offset == 9


def test_records_before_the_position_are_skipped() -> None:
    data = PartitionData(records=batch(0, b"a", b"b") + batch(2, b"c", b"d", b"e"))
    assert values(data, 3) == [b"d", b"e"]


@pytest.mark.parametrize("records", [b"", None, batch(0, b"a")[:-1]])
def test_without_a_complete_batch_the_position_stays(records: bytes | None) -> None:
    assert read_fetched(TP, PartitionData(records=records), 0) == ([], 0)


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    data = PartitionData(records=batch(0, b"a") + batch(1, b"b")[:-1])
    assert read_fetched(TP, data, 0).next_offset == 1


def test_a_corrupt_batch_is_reported() -> None:
    damaged = bytearray(batch(5, b"abc"))
    damaged[-2] ^= 1
    with pytest.raises(KafkaError, match="batch at offset 5 of partition t-3 fails its checksum"):
        read_fetched(TP, PartitionData(records=bytes(damaged)), 5)


TRANSACTIONS = b"".join(
    [
        batch(0, b"plain"),
        batch(1, b"a1", producer_id=1, transactional=True),
        batch(2, b"b1", producer_id=2, transactional=True),
        marker(3, 1, commit=False),
        batch(4, b"a2", producer_id=1, transactional=True),
        marker(5, 2, commit=True),
        marker(6, 1, commit=True),
    ]
)
ABORTED = [AbortedTransaction(producer_id=1, first_offset=1)]


def test_read_committed_skips_exactly_aborted_records() -> None:
    data = PartitionData(records=TRANSACTIONS, aborted_transactions=ABORTED)
    assert values(data, 0, COMMITTED) == [b"plain", b"b1", b"a2"]


def test_read_uncommitted_returns_all_data_records() -> None:
    data = PartitionData(records=TRANSACTIONS, aborted_transactions=None)
    assert values(data) == [b"plain", b"a1", b"b1", b"a2"]


def test_markers_advance_the_position() -> None:
    assert read_fetched(TP, PartitionData(records=marker(3, 1, commit=True)), 3) == ([], 4)


def test_a_later_transaction_of_the_same_producer_can_abort_again() -> None:
    again = [*ABORTED, AbortedTransaction(producer_id=1, first_offset=4)]
    data = PartitionData(records=TRANSACTIONS, aborted_transactions=again[::-1])
    assert values(data, 0, COMMITTED) == [b"plain", b"b1"]
