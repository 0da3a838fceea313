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


def refusal(states: ProducerStateManager, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check(batch, sequences=True)
    return error.value.code


def test_sequences_follow_each_other(states: ProducerStateManager) -> None:
    assert append(states, header(0, 3)) is None
    assert append(states, header(3, 2, offset=3)) is None
    assert refusal(states, header(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


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
    assert refusal(states, header(3, epoch=0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_one_of_the_last_five_batches_is_recognised(states: ProducerStateManager) -> None:
    for index in range(6):
        append(states, header(2 * index, 2, offset=10 + 2 * index))
    repeated = append(states, header(2, 2))
    assert repeated is not None
    assert (repeated.first_offset, repeated.last_offset, repeated.timestamp_ms) == (12, 13, 1_012)
    assert refusal(states, header(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(2, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3))
    assert refusal(states, header(0, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_with_sequence_zero(states: ProducerStateManager) -> None:
    append(states, header(0, 5))
    assert refusal(states, header(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, 5, epoch=1, offset=5)) is None
    assert refusal(states, header(0, 4, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


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
    assert refusal(states, header(2)) is ErrorCode.INVALID_TXN_STATE
    states.end_transaction(marker(coordinator_epoch=4), 23)
    assert states.first_undecided_offset == 22
    assert states.active[0] == ActiveProducer(9, 0, 1, 9_000, 4, -1)


def test_a_marker_of_a_new_epoch_starts_the_sequences_again(states: ProducerStateManager) -> None:
    append(states, header(0, transactional=True))
    states.end_transaction(marker(epoch=1), 1)
    assert refusal(states, header(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, epoch=1)) is None


def test_idle_producers_expire_but_not_in_a_transaction(states: ProducerStateManager) -> None:
    append(states, header(0))
    append(states, header(0, producer_id=10, transactional=True))
    states.remove_expired(1_999, 1_000)
    assert len(states) == 2
    states.remove_expired(2_000, 1_000)
    assert [producer.producer_id for producer in states.active] == [10]


def test_what_describe_producers_shows(states: ProducerStateManager) -> None:
    append(states, header(0, 3, offset=5, epoch=2))
    assert states.active == [ActiveProducer(9, 2, 2, 1_005, -1, -1)]


def marker_refusal(states: ProducerStateManager, ended: EndTransactionMarker, version: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check_end_marker(ended, version)
    return error.value.code


def test_a_marker_of_an_older_epoch_or_coordinator_is_fenced(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3, transactional=True))
    states.end_transaction(marker(epoch=3, coordinator_epoch=5), 1)
    assert marker_refusal(states, marker(epoch=2, coordinator_epoch=5)) is ErrorCode.INVALID_PRODUCER_EPOCH
    refused = marker_refusal(states, marker(epoch=3, coordinator_epoch=4))
    assert refused is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    states.check_end_marker(marker(epoch=3, coordinator_epoch=5), 0)
    states.check_end_marker(marker(producer_id=77), 2)


def test_a_marker_of_version_2_has_the_epoch_after_that_of_the_records(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=3, transactional=True))
    states.check_end_marker(marker(epoch=3), 1)
    assert marker_refusal(states, marker(epoch=3), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    states.check_end_marker(marker(epoch=4), 2)
    states.end_transaction(marker(epoch=4), 1)
    states.check_end_marker(marker(epoch=4), 2)  # written again: nothing is open any more


def test_a_marker_of_the_last_epoch_cannot_have_the_next(states: ProducerStateManager) -> None:
    append(states, header(0, epoch=2**15 - 1, transactional=True))
    states.check_end_marker(marker(epoch=2**15 - 1), 2)


def test_only_what_had_records_and_was_aborted_is_kept_as_aborted(states: ProducerStateManager) -> None:
    for producer_id, offset in ((9, 0), (10, 1)):
        append(states, header(0, offset=offset, producer_id=producer_id, transactional=True))
    assert states.end_transaction(marker(producer_id=10, commit=True), 2) is None
    assert states.end_transaction(marker(producer_id=10, commit=False), 3) is None
    assert states.end_transaction(marker(commit=False), 4) == (9, 0, 4, 5)


def test_the_last_stable_offset_of_an_abort_is_that_of_its_moment(states: ProducerStateManager) -> None:
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


def test_a_transactions_first_batch_needs_what_its_verification_gave(states: ProducerStateManager) -> None:
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


def test_an_older_epoch_is_not_even_verified(states: ProducerStateManager) -> None:
    states.record(header(0, epoch=2, transactional=True))
    with pytest.raises(KafkaError) as error:
        verify(states, epoch=1)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert verified(states, header(1, epoch=1, transactional=True), None) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_of_the_batches_that_are_being_verified_the_first_comes_first(states: ProducerStateManager) -> None:
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
    refused = verified(states, header(5, transactional=True), verification)
    assert refused is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
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
def bounded(states: ProducerStateManager, monkeypatch: pytest.MonkeyPatch) -> ProducerStateManager:
    """States of ten producers at most, of which three are forgotten together."""
    monkeypatch.setattr(module, "PRODUCER_IDS_MAX", 10)
    monkeypatch.setattr(module, "EVICTION_COUNT", 3)
    return states


def test_producers_are_bounded_and_those_idle_for_longest_are_forgotten(
    bounded: ProducerStateManager,
) -> None:
    for number in range(10):
        append(bounded, header(0, producer_id=number, offset=number))
    append(bounded, header(1, producer_id=0, offset=10))
    append(bounded, header(0, producer_id=10, offset=11))
    assert ids(bounded) == [0, 4, 5, 6, 7, 8, 9, 10]
    for number in range(100, 1_000):
        append(bounded, header(0, producer_id=number, offset=number))
        assert len(bounded) <= 10


def test_a_forgotten_producer_goes_on_where_it_was(bounded: ProducerStateManager) -> None:
    append(bounded, header(0, 5, producer_id=7, offset=0))
    for number in range(100, 120):
        append(bounded, header(0, producer_id=number, offset=number))
    assert 7 not in ids(bounded)
    assert append(bounded, header(5, producer_id=7, offset=200)) is None
    assert append(bounded, header(6, producer_id=7, offset=201)) is None
    assert append(bounded, header(6, producer_id=7, offset=202)) is not None, "a duplicate is known again"


def test_producers_in_a_transaction_or_about_to_begin_one_are_not_forgotten(
    bounded: ProducerStateManager,
) -> None:
    append(bounded, header(0, producer_id=1, offset=0, transactional=True))
    append(bounded, header(0, producer_id=2, offset=1))
    append(bounded, header(0, producer_id=3, offset=2, transactional=True))
    bounded.end_transaction(marker(producer_id=3), 3)
    bounded.start_verification(2, 0, 1, bumps_epochs=False, now_ms=0)
    for number in range(100, 200):
        append(bounded, header(0, producer_id=number, offset=number))
    assert {1, 2} <= set(ids(bounded))
    assert 3 not in ids(bounded)
    assert bounded.first_undecided_offset == 0


def test_where_every_producer_has_a_transaction_open_none_is_forgotten(bounded: ProducerStateManager) -> None:
    for number in range(20):
        append(bounded, header(0, producer_id=number, offset=number, transactional=True))
    assert len(bounded) == 20


def test_verifications_are_bounded_and_the_oldest_end(bounded: ProducerStateManager) -> None:
    first = bounded.start_verification(0, 0, 0, bumps_epochs=True, now_ms=0)
    for number in range(1, 50):
        latest = bounded.start_verification(number, 0, 0, bumps_epochs=True, now_ms=0)
    assert len(bounded._verifications) == 10
    late = header(0, producer_id=0, transactional=True)
    with pytest.raises(KafkaError) as error:
        bounded.check(late, sequences=True, verification=first, verifies=True)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    in_time = header(0, producer_id=49, transactional=True)
    assert bounded.check(in_time, sequences=True, verification=latest, verifies=True) is None


def test_after_a_restart_producers_are_forgotten_in_the_same_order(
    bounded: ProducerStateManager, tmp_path: Path
) -> None:
    for number in (5, 3, 8):
        append(bounded, header(0, producer_id=number, offset=100 - number))
    loaded = ProducerStateManager(TopicPartition("t", 0))
    loaded.replace(read_snapshot(write_snapshot(tmp_path, 200, bounded.entries)))
    loaded.evict(1)
    assert ids(loaded) == [3]
