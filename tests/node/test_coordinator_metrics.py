"""Groups and transactions of real clients in the broker's metrics."""

import re
import urllib.request
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.testing import EmbeddedBroker
from support.waiting import until

pytestmark = pytest.mark.kafka_settings({"barnabas.metrics.listener": "127.0.0.1:0"})

TIMEOUT_S = 20


def scraped(kafka: EmbeddedBroker) -> dict[str, float]:
    """Return the coordinators' metrics: name and labels without the prefix -> value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{kafka.server.metrics_port}/metrics", timeout=10) as page:
        text: str = page.read().decode()
    found = re.findall(r"^barnabas_((?:coordinator|group|offset|transaction)\S*) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def reading(kafka: EmbeddedBroker, group: str, protocol: str) -> Consumer:
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "enable.auto.commit": False, **settings}  # type: ignore[dict-item]
    )
    consumer.subscribe(["t"])
    return consumer


def fill(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("t", b"x")
    producer.flush(TIMEOUT_S)


def reached(kafka: EmbeddedBroker, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    until(lambda: holds(scraped(kafka)))
    return scraped(kafka)


def test_metrics_are_zero_before_the_first_member(kafka: EmbeddedBroker) -> None:
    values = scraped(kafka)
    assert values['coordinator_partitions{coordinator="group",state="active"}'] == 0
    assert values['groups{protocol="classic",state="PreparingRebalance"}'] == 0
    assert values['groups{protocol="consumer",state="Reconciling"}'] == 0
    assert values['transactional_ids{state="PrepareAbort"}'] == 0
    assert set(values.values()) == {0.0}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_metrics_of_a_group_its_member_rebalance_and_commits(kafka: EmbeddedBroker, protocol: str) -> None:
    fill(kafka)
    consumer = reading(kafka, "g", protocol)
    assert consumer.poll(TIMEOUT_S) is not None
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    values = reached(kafka, lambda values: values[f'groups{{protocol="{protocol}",state="Stable"}}'] == 1)
    assert values[f'group_members{{protocol="{protocol}"}}'] == 1
    assert values[f'group_rebalances_total{{protocol="{protocol}"}}'] >= 1
    assert (values["group_offsets"], values["offset_commits_total"]) == (1, 1)
    assert values['coordinator_partitions{coordinator="group",state="active"}'] > 0
    assert values['coordinator_loads_total{coordinator="group"}'] > 0
    assert values['coordinator_records_total{coordinator="group"}'] >= 2
    assert values['coordinator_timers{coordinator="group"}'] >= 1
    consumer.close()
    values = reached(kafka, lambda values: values[f'groups{{protocol="{protocol}",state="Empty"}}'] == 1)
    assert values[f'group_members{{protocol="{protocol}"}}'] == 0
    kafka.client.groups.delete(["g"])
    values = scraped(kafka)
    assert (values[f'groups{{protocol="{protocol}",state="Empty"}}'], values["group_offsets"]) == (0, 0)
    assert values["offset_deletions_total"] == 0


def test_metrics_of_a_transaction_and_its_pending_offsets(kafka: EmbeddedBroker) -> None:
    fill(kafka)
    consumer = reading(kafka, "g", "classic")
    assert consumer.poll(TIMEOUT_S) is not None
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "tx"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("t", b"y")
    producer.send_offsets_to_transaction(
        [TopicPartition("t", 0, 1)], consumer.consumer_group_metadata(), TIMEOUT_S
    )
    values = scraped(kafka)
    assert values['transactional_ids{state="Ongoing"}'] == 1
    assert (values["group_offsets"], values["group_pending_offsets"]) == (0, 1)
    producer.commit_transaction(TIMEOUT_S)
    values = reached(kafka, lambda values: values['transactional_ids{state="CompleteCommit"}'] == 1)
    assert (values["group_offsets"], values["group_pending_offsets"]) == (1, 0)
    assert (values["transactions_ending"], values["transaction_markers_waiting"]) == (0, 0)
    consumer.close()


@pytest.mark.kafka_settings(
    {
        "barnabas.metrics.listener": "127.0.0.1:0",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    }
)
def test_a_transaction_that_is_open_for_too_long(kafka: EmbeddedBroker) -> None:
    fill(kafka)
    settings = {"transactional.id": "tx", "transaction.timeout.ms": 1000, "message.timeout.ms": 900}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **settings})  # type: ignore[dict-item]
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("t", b"y")
    producer.flush(TIMEOUT_S)
    values = reached(kafka, lambda values: values['transactional_ids{state="CompleteAbort"}'] == 1)
    assert values["transactions_timed_out_total"] == 1
    with pytest.raises(KafkaException):
        producer.commit_transaction(TIMEOUT_S)
