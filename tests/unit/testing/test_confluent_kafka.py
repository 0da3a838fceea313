"""Injected faults as code that uses confluent-kafka sees them."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import EmbeddedBroker

Deliver = Callable[..., tuple[KafkaError | None, Any]]


@pytest.fixture
def deliver(kafka: EmbeddedBroker) -> Deliver:
    """Return a function that produces one record and returns the delivery callback's arguments."""

    def deliver(**config: Any) -> tuple[KafkaError | None, Any]:
        settings = {"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 1, "log_level": 0}
        producer = Producer({**settings, **config})
        outcomes: list[tuple[KafkaError | None, Any]] = []
        producer.produce("t", b"x", on_delivery=lambda error, message: outcomes.append((error, message)))
        assert producer.flush(20) == 0
        return outcomes[0]

    kafka.create_topic("t")
    return deliver


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR"])
def test_a_producer_retries_a_retriable_error(kafka: EmbeddedBroker, deliver: Deliver, error: str) -> None:
    fault = kafka.fail_next("Produce", error, times=2)
    failure, message = deliver(acks="all")
    assert failure is None
    assert message.offset() == 0
    assert fault.is_over
    assert len(kafka.records("t")) == 1


def test_a_fatal_error_reaches_the_delivery_callback(kafka: EmbeddedBroker, deliver: Deliver) -> None:
    fault = kafka.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="t")
    failure, _ = deliver()
    assert failure is not None
    assert failure.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert fault.struck_count == 1
    assert kafka.records("t") == []


def test_an_idempotent_producer_whose_response_was_lost_writes_once(
    kafka: EmbeddedBroker, deliver: Deliver
) -> None:
    fault = kafka.drop_next("Produce", handled=True)
    failure, message = deliver(**{"enable.idempotence": True})
    assert failure is None
    assert message.offset() == 0
    assert fault.is_over
    assert len(kafka.records("t")) == 1


def test_a_producer_without_idempotence_whose_response_was_lost_writes_twice(
    kafka: EmbeddedBroker, deliver: Deliver
) -> None:
    kafka.drop_next("Produce", handled=True)
    failure, _ = deliver(**{"enable.idempotence": False})
    assert failure is None
    assert len(kafka.records("t")) == 2


def test_a_dropped_request_is_sent_again(kafka: EmbeddedBroker, deliver: Deliver) -> None:
    kafka.drop_next("Produce", times=2)
    failure, _ = deliver(**{"enable.idempotence": False})
    assert failure is None
    assert len(kafka.records("t")) == 1


def test_a_response_that_is_too_late_is_a_timed_out_message(kafka: EmbeddedBroker, deliver: Deliver) -> None:
    kafka.delay_next("Produce", 3000)
    failure, _ = deliver(**{"message.timeout.ms": 1100, "enable.idempotence": False})
    assert failure is not None
    assert failure.code() == KafkaError._MSG_TIMED_OUT


def test_an_admin_client_gets_the_reason_of_a_failed_creation(kafka: EmbeddedBroker) -> None:
    kafka.fail_next("CreateTopics", "POLICY_VIOLATION")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    with pytest.raises(KafkaException) as failed:
        admin.create_topics([NewTopic("new", 1, 1)])["new"].result(10)
    assert failed.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert "injected by a test" in failed.value.args[0].str()
    assert kafka.topics() == {}


def test_a_consumer_continues_after_a_retriable_error_and_a_lost_connection(kafka: EmbeddedBroker) -> None:
    for value in ("a", "b"):
        kafka.produce("t", value)
    faults = [kafka.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER"), kafka.drop_next("Fetch")]
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer({**settings, "reconnect.backoff.ms": 1, "fetch.error.backoff.ms": 1})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        messages = consumer.consume(2, timeout=20)
    finally:
        consumer.close()
    assert [message.value() for message in messages if not message.error()] == [b"a", b"b"]
    assert all(fault.is_over for fault in faults)


def test_an_unauthorized_consumer_gets_an_error(kafka: EmbeddedBroker) -> None:
    kafka.produce("t", "x")
    kafka.fail_next("Fetch", "TOPIC_AUTHORIZATION_FAILED", times=1000)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(20)
        assert message is not None
        assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()
