"""A broker whose time can be advanced."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from barnabas.testing import EmbeddedBroker
from support.expiring_transactions import check_expiry


@pytest.fixture
def kafka() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(virtual_time=True) as running:
        yield running


def test_a_broker_without_virtual_time_cannot_be_advanced() -> None:
    with EmbeddedBroker() as kafka, pytest.raises(RuntimeError, match="virtual_time=True"):
        kafka.advance(hours=1)


def test_records_expire_after_their_retention(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", configs={"retention.ms": str(3_600_000)})
    kafka.produce("t", "old")
    kafka.advance(minutes=30)
    assert [record.value for record in kafka.records("t")] == [b"old"]
    kafka.advance(hours=1)
    kafka.produce("t", "new")
    assert [record.value for record in kafka.records("t")] == [b"new"]


def test_an_open_transaction_is_aborted_after_its_timeout(kafka: EmbeddedBroker) -> None:
    check_expiry(kafka, partitions_count=1)


def member_ids(kafka: EmbeddedBroker) -> set[str]:
    [group] = kafka.client.groups.describe(["g"]).values()
    return {member.member_id for member in group.members}


def test_a_group_member_is_removed_after_its_session_timeout(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.1)
    before = member_ids(kafka)
    assert len(before) == 1
    kafka.advance(minutes=1)
    assert not before & member_ids(kafka), "it may have joined again"
    consumer.close()


def test_a_day_can_be_advanced(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", configs={"retention.ms": str(23 * 3_600_000)})
    kafka.produce("t", "old")
    kafka.advance(hours=24)
    kafka.produce("t", "new")
    assert [record.value for record in kafka.records("t")] == [b"new"]
