from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.producers import producer_state_manager as module
from barnabas.log.producers.producer_snapshot import read_snapshot, write_snapshot
from barnabas.log.producers.producer_state_manager import (
    ActiveProducer,
    BatchMetadata,
    ProducerStateManager,
    VerificationGuard,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import TRANSACTIONAL_BIT, BatchHeader
from barnabas.wire.records.control import EndTransactionMarker

SEQUENCE_MAX = 2**31 - 1


@pytest.fixture
def states() -> ProducerStateManager:
    return ProducerStateManager(TopicPartition("t", 0))


def header(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    offset: int = 0,
    producer_id: int = 9,
    transactional: bool = False,
) -> BatchHeader:
    attributes = TRANSACTIONAL_BIT if transactional else 0
    return BatchHeader(
        offset,
        100,
        0,
        2,
        0,
        attributes,
        count - 1,
        1_000,
        1_000 + offset,
        producer_id,
        epoch,
        sequence,
        count,
    )


def marker(
    *, producer_id: int = 9, epoch: int = 0, coordinator_epoch: int = 0, commit: bool = True
) -> EndTransactionMarker:
    return EndTransactionMarker(producer_id, epoch, coordinator_epoch, commit, 9_000)


def append(states: ProducerStateManager, batch: BatchHeader) -> BatchMetadata | None:
    duplicate = states.check(batch, sequences=True)
    if duplicate is None:
        states.record(batch)
    return duplicate


def error_code(states: ProducerStateManager, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check(batch, sequences=True)
    return error.value.code


def test_sequences_must_be_consecutive(states: ProducerStateManager) -> None:
    assert append(states, header(0, 3)) is None
    assert append(states, header(3, 2, offset=3)) is None
    assert error_code(states, header(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_code(states, header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap(states: ProducerStateManager) -> None:
    append(states, header(SEQUENCE_MAX - 1, 2))
    assert append(states, header(0, offset=2)) is None
    append(states, header(1, 1, offset=3))
    states.record(header(SEQUENCE_MAX, 3, offset=4))
    assert states.check(header(SEQUENCE_MAX, 3), sequences=True) == BatchMetadata(1, 6, 2, 1_004)


def test_an_unknown_producer_may_start_anywhere(states: ProducerStateManager) -> None:
    assert append(states, header(77)) is None


def test_without_an_epoch_any_sequence_may_follow(states: ProducerStateManager) -> None:
    append(states, header(5, epoch=-1))
    assert append(states, header(3, epoch=-1, offset=1)) is None
    assert append(states, header(9, epoch=0, offset=2)) is None
    assert error_code(states, header(3, epoch=0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_duplicates_of_the_last_five_batches_are_recognized(states: ProducerStateManager) -> None:
    for index in range(6):
        append(states, header(2 * index, 2, offset=10 + 2 * index))
    duplicate_ = append(states, header(2, 2))
    assert duplicate_ is not None
    assert (duplicate_.first_offset, duplicate_.last_offset, duplicate_.timestamp_ms) == (12, 13, 1_012)
    assert error_code(states, header(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_code(states, header(2, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3))
    assert error_code(states, header(0, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_with_sequence_zero(states: ProducerStateManager) -> None:
    append(states, header(0, 5))
    assert error_code(states, header(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, 5, epoch=1, offset=5)) is None
    assert error_code(states, header(0, 4, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_coordinators_are_checked_by_epoch_only(states: ProducerStateManager) -> None:
    states.record(header(-1, epoch=2))
    assert states.check(header(-1, epoch=2), sequences=False) is None
    with pytest.raises(KafkaError) as error:
        states.check(header(-1, epoch=1), sequences=False)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_is_known_until_its_marker(states: ProducerStateManager) -> None:
    append(states, header(0, transactional=True, offset=20))
    append(states, header(1, transactional=True, offset=21))
    append(states, header(0, transactional=True, offset=22, producer_id=10))
    assert states.first_undecided_offset == 20
    assert error_code(states, header(2)) is ErrorCode.INVALID_TXN_STATE
    states.end_transaction(marker(coordinator_epoch=4), 23)
    assert states.first_undecided_offset == 22
    assert states.active[0] == ActiveProducer(9, 0, 1, 9_000, 4, -1)


def test_a_marker_of_a_new_epoch_resets_the_sequences(states: ProducerStateManager) -> None:
    append(states, header(0, transactional=True))
    states.end_transaction(marker(epoch=1), 1)
    assert error_code(states, header(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, epoch=1)) is None


def test_idle_producers_expire_but_not_in_a_transaction(states: ProducerStateManager) -> None:
    append(states, header(0))
    append(states, header(0, producer_id=10, transactional=True))
    states.remove_expired(1_999, 1_000)
    assert len(states) == 2
    states.remove_expired(2_000, 1_000)
    assert [producer.producer_id for producer in states.active] == [10]


def test_active_producers_have_the_fields_of_describe_producers(states: ProducerStateManager) -> None:
    append(states, header(0, 3, offset=5, epoch=2))
    assert states.active == [ActiveProducer(9, 2, 2, 1_005, -1, -1)]


def marker_error_code(
    states: ProducerStateManager, end_marker: EndTransactionMarker, version: int = 0
) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check_transaction_marker(end_marker, version)
    return error.value.code


def test_a_marker_of_an_older_epoch_or_coordinator_is_fenced(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3, transactional=True))
    states.end_transaction(marker(epoch=3, coordinator_epoch=5), 1)
    assert marker_error_code(states, marker(epoch=2, coordinator_epoch=5)) is ErrorCode.INVALID_PRODUCER_EPOCH
    code = marker_error_code(states, marker(epoch=3, coordinator_epoch=4))
    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    states.check_transaction_marker(marker(epoch=3, coordinator_epoch=5), 0)
    states.check_transaction_marker(marker(producer_id=77), 2)


def test_a_marker_of_version_2_has_the_epoch_after_that_of_the_records(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3, transactional=True))
    states.check_transaction_marker(marker(epoch=3), 1)
    assert marker_error_code(states, marker(epoch=3), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    states.check_transaction_marker(marker(epoch=4), 2)
    states.end_transaction(marker(epoch=4), 1)
    states.check_transaction_marker(marker(epoch=4), 2)  # a retry: no transaction is open any more


def test_a_marker_of_the_largest_epoch_keeps_that_epoch(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=2**15 - 1, transactional=True))
    states.check_transaction_marker(marker(epoch=2**15 - 1), 2)


def test_only_an_abort_of_a_transaction_with_records_is_returned(states: ProducerStateManager) -> None:
    for producer_id, offset in ((9, 0), (10, 1)):
        append(states, header(0, offset=offset, producer_id=producer_id, transactional=True))
    assert states.end_transaction(marker(producer_id=10, commit=True), 2) is None
    assert states.end_transaction(marker(producer_id=10, commit=False), 3) is None
    assert states.end_transaction(marker(commit=False), 4) == (9, 0, 4, 5)


def test_an_abort_has_the_last_stable_offset_after_its_marker(states: ProducerStateManager) -> None:
    append(states, header(0, transactional=True))
    append(states, header(0, offset=1, producer_id=10, transactional=True))
    assert states.end_transaction(marker(producer_id=10, commit=False), 2) == (10, 1, 2, 0)
    assert states.end_transaction(marker(commit=False), 3) == (9, 0, 3, 4)


def test_an_ended_transaction_is_unstable_until_its_marker_is_replicated(
    states: ProducerStateManager,
) -> None:
    append(states, header(0, offset=5, transactional=True))
    append(states, header(0, offset=6, producer_id=10, transactional=True))
    states.end_transaction(marker(), 7)
    assert states.first_unstable_offset == 5
    states.on_high_watermark_updated(7)
    assert states.first_unstable_offset == 5
    states.on_high_watermark_updated(8)
    assert states.first_unstable_offset == 6
    states.end_transaction(marker(producer_id=10), 8)
    states.on_high_watermark_updated(9)
    assert states.first_unstable_offset is None


def verify(
    states: ProducerStateManager, sequence: int = 0, *, epoch: int = 0, bumps: bool = False
) -> VerificationGuard | None:
    return states.start_verification(9, epoch, sequence, bumps_epochs=bumps, now_ms=1_000)


def verified(
    states: ProducerStateManager, batch: BatchHeader, verification: VerificationGuard | None
) -> ErrorCode:
    try:
        states.check(batch, sequences=True, verification=verification, verifies=True)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_transactions_first_batch_needs_its_verification_guard(states: ProducerStateManager) -> None:
    first = header(0, transactional=True)
    assert verified(states, first, None) is ErrorCode.INVALID_TXN_STATE
    verification = verify(states)
    assert verification is not None
    assert verify(states, 1) is verification
    assert verified(states, first, None) is ErrorCode.INVALID_TXN_STATE
    assert verified(states, first, VerificationGuard(0, 0, False, 0)) is ErrorCode.INVALID_TXN_STATE
    assert verified(states, first, verification) is ErrorCode.NONE
    states.record(first)
    assert verify(states, 1) is None
    assert verified(states, header(1, transactional=True), None) is ErrorCode.NONE


def test_the_next_transaction_is_verified_again(states: ProducerStateManager) -> None:
    verification = verify(states)
    states.record(header(0, transactional=True))
    states.end_transaction(marker(), 1)
    assert verified(states, header(1, transactional=True), verification) is ErrorCode.INVALID_TXN_STATE
    assert verified(states, header(1, transactional=True), verify(states, 1)) is ErrorCode.NONE


def test_verification_of_an_older_epoch_is_rejected(states: ProducerStateManager) -> None:
    states.record(header(0, epoch=2, transactional=True))
    with pytest.raises(KafkaError) as error:
        verify(states, epoch=1)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert verified(states, header(1, epoch=1, transactional=True), None) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_lowest_sequence_being_verified_must_be_appended_first(states: ProducerStateManager) -> None:
    verification = verify(states, 4)
    assert verify(states, 3) is verification
    later = header(4, transactional=True)
    assert verified(states, later, verification) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verified(states, header(3, transactional=True), verification) is ErrorCode.NONE


def test_a_newer_epoch_is_verified_by_its_own_sequences(states: ProducerStateManager) -> None:
    verify(states, 0)
    verification = verify(states, 7, epoch=1)
    assert verification is not None
    assert (verification.producer_epoch, verification.lowest_sequence) == (1, 7)


def test_an_unknown_producer_of_version_2_starts_with_sequence_0(states: ProducerStateManager) -> None:
    verification = verify(states, 5, bumps=True)
    code = verified(states, header(5, transactional=True), verification)
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verified(states, header(0, transactional=True), verification) is ErrorCode.NONE


@pytest.mark.parametrize(("bumps", "kept"), [(True, True), (False, False)])
def test_a_marker_of_version_2_leaves_the_verification_of_its_own_epoch(
    states: ProducerStateManager, bumps: bool, kept: bool
) -> None:
    states.record(header(0, transactional=True))
    verification = verify(states, 0, epoch=1, bumps=bumps)
    states.end_transaction(marker(epoch=1), 1)
    again = verify(states, 0, epoch=1, bumps=bumps)
    assert (again is verification) == kept


def test_verifications_expire(states: ProducerStateManager) -> None:
    verification = verify(states)
    states.remove_expired(1_999, 1_000)
    assert verify(states) is verification
    states.remove_expired(2_000, 1_000)
    assert verify(states) is not verification


def ids(states: ProducerStateManager) -> list[int]:
    return sorted(entry.producer_id for entry in states.entries)


@pytest.fixture
def limited(states: ProducerStateManager, monkeypatch: pytest.MonkeyPatch) -> ProducerStateManager:
    """Return a manager limited to ten producers, of which three are evicted at a time."""
    monkeypatch.setattr(module, "PRODUCER_IDS_MAX", 10)
    monkeypatch.setattr(module, "EVICTION_COUNT", 3)
    return states


def test_the_number_of_producers_is_limited_and_those_with_the_oldest_records_are_evicted(
    limited: ProducerStateManager,
) -> None:
    for number in range(10):
        append(limited, header(0, producer_id=number, offset=number))
    append(limited, header(1, producer_id=0, offset=10))
    append(limited, header(0, producer_id=10, offset=11))
    assert ids(limited) == [0, 4, 5, 6, 7, 8, 9, 10]
    for number in range(100, 1_000):
        append(limited, header(0, producer_id=number, offset=number))
        assert len(limited) <= 10


def test_an_evicted_producer_may_continue_its_sequences(limited: ProducerStateManager) -> None:
    append(limited, header(0, 5, producer_id=7, offset=0))
    for number in range(100, 120):
        append(limited, header(0, producer_id=number, offset=number))
    assert 7 not in ids(limited)
    assert append(limited, header(5, producer_id=7, offset=200)) is None
    assert append(limited, header(6, producer_id=7, offset=201)) is None
    assert append(limited, header(6, producer_id=7, offset=202)) is not None, (
        "a duplicate is recognized again"
    )


def test_producers_with_an_open_or_verified_transaction_are_not_evicted(
    limited: ProducerStateManager,
) -> None:
    append(limited, header(0, producer_id=1, offset=0, transactional=True))
    append(limited, header(0, producer_id=2, offset=1))
    append(limited, header(0, producer_id=3, offset=2, transactional=True))
    limited.end_transaction(marker(producer_id=3), 3)
    limited.start_verification(2, 0, 1, bumps_epochs=False, now_ms=0)
    for number in range(100, 200):
        append(limited, header(0, producer_id=number, offset=number))
    assert {1, 2} <= set(ids(limited))
    assert 3 not in ids(limited)
    assert limited.first_undecided_offset == 0


def test_no_producer_is_evicted_if_all_have_open_transactions(limited: ProducerStateManager) -> None:
    for number in range(20):
        append(limited, header(0, producer_id=number, offset=number, transactional=True))
    assert len(limited) == 20


def test_the_number_of_verifications_is_limited_and_the_oldest_are_dropped(
    limited: ProducerStateManager,
) -> None:
    first = limited.start_verification(0, 0, 0, bumps_epochs=True, now_ms=0)
    for number in range(1, 50):
        latest = limited.start_verification(number, 0, 0, bumps_epochs=True, now_ms=0)
    assert len(limited._verifications) == 10
    late = header(0, producer_id=0, transactional=True)
    with pytest.raises(KafkaError) as error:
        limited.check(late, sequences=True, verification=first, verifies=True)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    in_time = header(0, producer_id=49, transactional=True)
    assert limited.check(in_time, sequences=True, verification=latest, verifies=True) is None


def test_producers_are_evicted_in_the_same_order_after_a_restart(
    limited: ProducerStateManager, tmp_path: Path
) -> None:
    for number in (5, 3, 8):
        append(limited, header(0, producer_id=number, offset=100 - number))
    loaded = ProducerStateManager(TopicPartition("t", 0))
    loaded.replace(read_snapshot(write_snapshot(tmp_path, 200, limited.entries)))
    loaded.evict(1)
    assert ids(loaded) == [3]
