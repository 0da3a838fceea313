from barnabas.log.compaction.cleaned_transaction_metadata import CleanedTransactionMetadata
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.control import ControlType
from barnabas.wire.records.record import Record, encode_batch


def aborted(first_offset: int) -> AbortedTransaction:
    return AbortedTransaction(7, first_offset, first_offset + 1, first_offset + 2)


def data(offset: int, producer_id: int = 7, *, transactional: bool = True) -> BatchHeader:
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    batch = encode_batch(
        [Record(0, 0, b"k", b"v")], base_offset=offset, transactional=transactional, **options
    )
    return read_header(batch)


marker = data  # the relevant header fields are the same


def test_an_abort_marker_can_be_discarded_after_the_records_of_its_transaction() -> None:
    first = CleanedTransactionMetadata([aborted(0)])
    assert first.is_aborted(data(0))
    assert not first.is_aborted(data(1, producer_id=8))
    assert not first.can_discard(marker(2), ControlType.ABORT)
    assert first.take_retained() == [aborted(0)]
    assert first.take_retained() == []
    assert CleanedTransactionMetadata([aborted(0)]).can_discard(marker(2), ControlType.ABORT)


def test_a_commit_marker_can_be_discarded_once_no_batch_of_its_transaction_is_left() -> None:
    transactions = CleanedTransactionMetadata([])
    assert not transactions.is_aborted(data(0))
    assert not transactions.can_discard(marker(1), ControlType.COMMIT)
    assert transactions.can_discard(marker(2), ControlType.COMMIT)


def test_consecutive_transactions_of_one_producer_are_distinguished() -> None:
    transactions = CleanedTransactionMetadata([aborted(4), aborted(0)])
    assert transactions.is_aborted(data(0))
    assert not transactions.can_discard(marker(1), ControlType.ABORT)
    assert not transactions.is_aborted(data(2))
    assert not transactions.can_discard(marker(3), ControlType.COMMIT)
    assert transactions.is_aborted(data(4))
    assert not transactions.can_discard(marker(5), ControlType.ABORT)
    assert transactions.take_retained() == [aborted(0), aborted(4)]


def test_records_outside_of_transactions_are_never_aborted() -> None:
    transactions = CleanedTransactionMetadata([aborted(0)])
    assert not transactions.is_aborted(data(0, transactional=False))


def test_an_empty_control_batch_can_be_discarded_and_one_of_another_type_cannot() -> None:
    transactions = CleanedTransactionMetadata([])
    assert transactions.can_discard(marker(0), None)
    assert not transactions.can_discard(marker(1), ControlType.LEADER_CHANGE)
