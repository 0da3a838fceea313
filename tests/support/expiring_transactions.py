"""Transactions that end by their timeout in virtual time."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from barnabas.testing import EmbeddedBroker, EmbeddedCluster

WAIT_S = 20


def check_expiry(kafka: EmbeddedBroker | EmbeddedCluster, partitions_count: int) -> None:
    """An open transaction is aborted after its timeout: it cannot be committed, and readers go on behind it."""
    kafka.create_topic("t", partitions=partitions_count)
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "transactional.id": "t",
        "transaction.timeout.ms": 60_000,
    }
    producer = Producer(settings)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for partition in range(partitions_count):
        producer.produce("t", b"never", partition=partition)
    producer.flush(WAIT_S)
    kafka.advance(minutes=2)
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)
    kafka.produce("t", "after")
    assert _first_value(kafka.bootstrap) == b"after"


def _first_value(bootstrap: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    message = consumer.poll(WAIT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None
    return message.value()
