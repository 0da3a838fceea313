"""Idempotent producers: each record is stored once and in order, whatever is sent twice (KIP-98)."""

import pytest
from confluent_kafka import Producer

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import PartitionProduceResponse
from support.batches import batch, values_of
from support.wire import Wire


def new_producer(wire: Wire) -> int:
    response = wire.ask(InitProducerIdRequest(transactional_id=None))
    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
    return int(response.producer_id)


def send(
    wire: Wire, producer_id: int, sequence: int, *values: bytes, epoch: int = 0
) -> PartitionProduceResponse:
    records = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return wire.produce("t", records)


@pytest.fixture
def producer_id(kafka: EmbeddedBroker, wire: Wire) -> int:
    kafka.create_topic("t")
    return new_producer(wire)


def test_a_duplicate_batch_gets_its_first_offset_and_is_not_appended(wire: Wire, producer_id: int) -> None:
    batches = [(0, b"a", b"b"), (2, b"c"), (3, b"d"), (4, b"e"), (5, b"f")]
    first = [send(wire, producer_id, *each).base_offset for each in batches]
    again = [send(wire, producer_id, *each) for each in batches]
    assert first == [0, 2, 3, 4, 5]
    assert [answer.base_offset for answer in again] == first
    assert {answer.error_code for answer in again} == {ErrorCode.NONE}
    assert values_of(wire.fetch("t").records) == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_a_duplicate_of_an_old_batch_is_out_of_order_and_not_appended(wire: Wire, producer_id: int) -> None:
    for sequence in range(6):
        send(wire, producer_id, sequence, b"x")
    assert send(wire, producer_id, 0, b"x").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert wire.list_offset("t", -1).offset == 6


@pytest.mark.parametrize("sequence", [2, 5, 1_000_000])
def test_a_sequence_gap_is_out_of_order(wire: Wire, producer_id: int, sequence: int) -> None:
    send(wire, producer_id, 0, b"a")
    answer = send(wire, producer_id, sequence, b"b")
    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert str(sequence) in (answer.error_message or "")
    assert send(wire, producer_id, 1, b"b").base_offset == 1


def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_0(wire: Wire, producer_id: int) -> None:
    send(wire, producer_id, 0, b"a")
    assert send(wire, producer_id, 1, b"b", epoch=1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, producer_id, 0, b"b", epoch=1).base_offset == 1
    assert send(wire, producer_id, 1, b"c", epoch=0).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert values_of(wire.fetch("t").records) == [b"a", b"b"]


def test_sequences_wrap_to_0(wire: Wire, producer_id: int) -> None:
    last = 2**31 - 1
    assert (
        send(wire, producer_id, last, b"a").error_code == ErrorCode.NONE
    )  # the first batch of an unknown producer
    assert send(wire, producer_id, 0, b"b").base_offset == 1
    assert send(wire, producer_id, 0, b"b").base_offset == 1


@pytest.mark.parametrize("kill", [False, True])
def test_producer_state_survives_a_restart(
    kafka: EmbeddedBroker, wire: Wire, producer_id: int, kill: bool
) -> None:
    for sequence in range(3):
        send(wire, producer_id, sequence, b"x")
    kafka.restart(kill=kill)
    with Wire(kafka.port) as after:
        # As in Apache Kafka, snapshots have a producer's last batch only; recovery of a log finds more.
        known = range(3) if kill else [2]
        assert [send(after, producer_id, sequence, b"x").base_offset for sequence in known] == list(known)
        assert send(after, producer_id, 4, b"x").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(after, producer_id, 3, b"x").base_offset == 3
        assert send(after, producer_id, 0, b"x", epoch=1).base_offset == 4
        assert send(after, producer_id, 4, b"x").error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("kill", [False, True])
def test_producer_ids_are_unique(kafka: EmbeddedBroker, wire: Wire, kill: bool) -> None:
    before = {new_producer(wire) for _ in range(50)}
    kafka.restart(kill=kill)
    with Wire(kafka.port) as after:
        later = {new_producer(after) for _ in range(50)}
    assert len(before | later) == 100


def test_producers_are_described(wire: Wire, producer_id: int) -> None:
    send(wire, producer_id, 0, b"a", b"b")
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0, 1])])
    found, missing = wire.ask(request).topics[0].partitions
    [producer] = found.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (producer_id, 0, 1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_invalid_init_producer_id_is_rejected(wire: Wire) -> None:
    def ask(**fields: object) -> ErrorCode:
        return ErrorCode(wire.ask(InitProducerIdRequest(**fields)).error_code)

    assert ask(transactional_id="") is ErrorCode.INVALID_REQUEST
    assert ask(transactional_id=None, producer_id=5) is ErrorCode.INVALID_REQUEST
    assert ask(transactional_id="mine", transaction_timeout_ms=1) is ErrorCode.NOT_COORDINATOR


def test_confluent_kafka_writes_each_record_once_when_responses_are_lost(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    settings = {"enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 10, "log_level": 0}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 1, **settings})
    sent = [str(number).encode() for number in range(300)]
    for number, value in enumerate(sent):
        if number % 100 == 50:
            kafka.drop_next("Produce", handled=True)
        producer.produce("t", value)
        producer.poll(0)
    assert producer.flush(20) == 0
    assert [record.value for record in kafka.records("t")] == sent
