import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.producer_state import ActiveProducer, ProducedBatch, ProducerStates
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import TRANSACTIONAL_BIT, BatchHeader

SEQUENCE_MAX = 2**31 - 1


@pytest.fixture
def states() -> ProducerStates:
    return ProducerStates(TopicPartition("t", 0))


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


def append(states: ProducerStates, batch: BatchHeader) -> ProducedBatch | None:
    duplicate = states.check(batch, sequences=True)
    if duplicate is None:
        states.record(batch)
    return duplicate


def refusal(states: ProducerStates, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check(batch, sequences=True)
    return error.value.code


def test_sequences_follow_each_other(states: ProducerStates) -> None:
    assert append(states, header(0, 3)) is None
    assert append(states, header(3, 2, offset=3)) is None
    assert refusal(states, header(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap(states: ProducerStates) -> None:
    append(states, header(SEQUENCE_MAX - 1, 2))
    assert append(states, header(0, offset=2)) is None
    append(states, header(1, 1, offset=3))
    states.record(header(SEQUENCE_MAX, 3, offset=4))
    assert states.check(header(SEQUENCE_MAX, 3), sequences=True) == ProducedBatch(1, 6, 2, 1_004)


def test_an_unknown_producer_may_start_anywhere(states: ProducerStates) -> None:
    assert append(states, header(77)) is None


def test_without_an_epoch_any_sequence_may_follow(states: ProducerStates) -> None:
    append(states, header(5, epoch=-1))
    assert append(states, header(3, epoch=-1, offset=1)) is None
    assert append(states, header(9, epoch=0, offset=2)) is None
    assert refusal(states, header(3, epoch=0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_one_of_the_last_five_batches_is_recognised(states: ProducerStates) -> None:
    for index in range(6):
        append(states, header(2 * index, 2, offset=10 + 2 * index))
    repeated = append(states, header(2, 2))
    assert repeated is not None
    assert (repeated.first_offset, repeated.last_offset, repeated.timestamp_ms) == (12, 13, 1_012)
    assert refusal(states, header(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(2, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced(states: ProducerStates) -> None:
    append(states, header(0, epoch=3))
    assert refusal(states, header(0, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_with_sequence_zero(states: ProducerStates) -> None:
    append(states, header(0, 5))
    assert refusal(states, header(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, 5, epoch=1, offset=5)) is None
    assert refusal(states, header(0, 4, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_coordinators_are_checked_by_epoch_only(states: ProducerStates) -> None:
    states.record(header(-1, epoch=2))
    assert states.check(header(-1, epoch=2), sequences=False) is None
    with pytest.raises(KafkaError) as error:
        states.check(header(-1, epoch=1), sequences=False)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_is_known_until_its_marker(states: ProducerStates) -> None:
    append(states, header(0, transactional=True, offset=20))
    append(states, header(1, transactional=True, offset=21))
    append(states, header(0, transactional=True, offset=22, producer_id=10))
    assert states.first_undecided_offset == 20
    assert refusal(states, header(2)) is ErrorCode.INVALID_TXN_STATE
    states.end_transaction(header(-1, epoch=0), coordinator_epoch=4, timestamp_ms=9_000)
    assert states.first_undecided_offset == 22
    assert states.active[0] == ActiveProducer(9, 0, 1, 9_000, 4, -1)


def test_a_marker_of_a_new_epoch_starts_the_sequences_again(states: ProducerStates) -> None:
    append(states, header(0, transactional=True))
    states.end_transaction(header(-1, epoch=1), coordinator_epoch=0, timestamp_ms=1)
    assert refusal(states, header(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, header(0, epoch=1)) is None


def test_idle_producers_expire_but_not_in_a_transaction(states: ProducerStates) -> None:
    append(states, header(0))
    append(states, header(0, producer_id=10, transactional=True))
    states.remove_expired(1_999, 1_000)
    assert len(states) == 2
    states.remove_expired(2_000, 1_000)
    assert [producer.producer_id for producer in states.active] == [10]


def test_what_describe_producers_shows(states: ProducerStates) -> None:
    append(states, header(0, 3, offset=5, epoch=2))
    assert states.active == [ActiveProducer(9, 2, 2, 1_005, -1, -1)]
