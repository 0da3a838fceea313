"""Transactional producers, and Kafka's tools on transactions and the transaction log."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from interop.brokers import Broker
from interop.clients import Client, kinds_that
from interop.reference import TOOLS, java, tool

WAIT_S = 30.0


def transactional(broker: Broker, transactional_id: str, timeout_ms: int = 60_000) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def write(producer: Producer, topic: str, *values: str) -> None:
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def values(broker: Broker, topic: str, isolation: str, count: int) -> list[str]:
    """Return the first values of the topic's partition at this isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reads",
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.value() or b"").decode())
    rest = consumer.poll(0.5)
    consumer.close()
    return [*found, *([] if rest is None else ["more"])]


@pytest.fixture
def transactional_id(names: Iterator[str]) -> str:
    return next(names)


@pytest.fixture
def transactions(broker: Broker) -> Callable[..., str]:
    """Return a function that runs kafka-transactions."""

    def run(*arguments: str) -> str:
        return tool("kafka-transactions", "--bootstrap-server", broker.bootstrap, *arguments).stdout

    return run


def test_aborted_records_are_visible_to_read_uncommitted_only(
    broker: Broker, topic: str, transactional_id: str
) -> None:
    producer = transactional(broker, transactional_id)
    for number, commit in enumerate([True, False, True, False, True]):
        producer.begin_transaction()
        write(producer, topic, f"{number}a", f"{number}b")
        if commit:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
    producer.begin_transaction()
    write(producer, topic, "open")
    committed = ["0a", "0b", "2a", "2b", "4a", "4b"]
    assert values(broker, topic, "read_committed", 6) == committed
    assert len(values(broker, topic, "read_uncommitted", 11)) == 11
    producer.commit_transaction(WAIT_S)
    assert values(broker, topic, "read_committed", 7) == [*committed, "open"]


def test_a_zombie_is_fenced_and_its_open_transaction_aborted(
    broker: Broker, topic: str, transactional_id: str
) -> None:
    zombie = transactional(broker, transactional_id)
    zombie.begin_transaction()
    write(zombie, topic, "of the zombie")
    successor = transactional(broker, transactional_id)
    successor.begin_transaction()
    write(successor, topic, "of its successor")
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(WAIT_S)
    assert fenced.value.args[0].name() == "_FENCED"
    successor.commit_transaction(WAIT_S)
    assert values(broker, topic, "read_committed", 1) == ["of its successor"]


@pytest.mark.cluster
@pytest.mark.parametrize("client", kinds_that("transact"), indirect=True)
def test_every_client_commits_and_aborts(
    client: Client, broker: Broker, topic: str, transactional_id: str
) -> None:
    for value, commit in [("1", True), ("2", False), ("3", True)]:
        records = [{"key": "k", "value": value + half} for half in "ab"]
        client.do(
            "transact",
            topic=topic,
            partition=0,
            records=records,
            transactional_id=transactional_id,
            commit=commit,
        )
    assert values(broker, topic, "read_committed", 4) == ["1a", "1b", "3a", "3b"]
    assert len(values(broker, topic, "read_uncommitted", 6)) == 6


def test_the_java_producer_commits_many_transactions(
    broker: Broker, topic: str, transactional_id: str
) -> None:
    command = java(
        TOOLS["kafka-producer-perf-test"],
        *["--bootstrap-server", broker.bootstrap, "--topic", topic, "--throughput", "2000"],
        *["--num-records", "2000", "--record-size", "10"],
        *["--transactional-id", transactional_id, "--transaction-duration-ms", "50"],
    )
    _run(command)
    assert len(values(broker, topic, "read_committed", 2000)) == 2000


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kafka_transactions_lists_and_describes(
    broker: Broker, topic: str, transactional_id: str, transactions: Callable[..., str]
) -> None:
    producer = transactional(broker, transactional_id)
    producer.begin_transaction()
    write(producer, topic, "open")
    listed = next(line for line in transactions("list").splitlines() if transactional_id in line)
    assert listed.split()[-1] == "Ongoing"
    lasting = transactions("list", "--duration-filter", "3600000")
    assert transactional_id not in lasting
    described = transactions("describe", "--transactional-id", transactional_id)
    assert re.search(rf"Ongoing\s+60000\s.*{topic}-0", described), described
    open_since = transactions("describe-producers", "--topic", topic, "--partition", "0").splitlines()[1]
    assert open_since.split()[-1] == "0", "the offset at which the transaction began"
    producer.commit_transaction(WAIT_S)
    ended = transactions("describe-producers", "--topic", topic, "--partition", "0").splitlines()[1]
    assert ended.split()[-1] == "None"


def test_kafka_transactions_aborts_a_hanging_transaction(
    broker: Broker, topic: str, transactional_id: str, transactions: Callable[..., str]
) -> None:
    producer = transactional(broker, transactional_id)
    producer.begin_transaction()
    write(producer, topic, "hangs")
    transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    ended = transactions("describe-producers", "--topic", topic, "--partition", "0").splitlines()[1]
    assert ended.split()[-1] == "None"
    after = Producer({"bootstrap.servers": broker.bootstrap})
    write(after, topic, "after")
    assert values(broker, topic, "read_committed", 1) == ["after"]


def test_kafkas_formatter_prints_the_transaction_log(
    broker: Broker, topic: str, transactional_id: str
) -> None:
    producer = transactional(broker, transactional_id)
    producer.begin_transaction()
    write(producer, topic, "x")
    producer.commit_transaction(WAIT_S)
    printed = tool(
        "kafka-console-consumer",
        *["--bootstrap-server", broker.bootstrap, "--topic", "__transaction_state", "--from-beginning"],
        *["--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"],
        *["--timeout-ms", "5000"],
        check=False,
    ).stdout
    states = [
        each["value"]["data"]["transactionStatus"]
        for each in documents(printed)
        if each["key"]["data"]["transactionalId"] == transactional_id
    ]
    assert states == [0, 1, 2, 4], printed


def documents(text: str) -> Iterator[Any]:
    """Split consecutive JSON documents without separators."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text.rstrip()):
        document, position = decoder.raw_decode(text, position)
        yield document
