"""Barnabas decodes and encodes what Apache Kafka writes to its coordinators' topics, record by record."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker
from interop.targets import START

from barnabas.base import ids
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.wire.coordinator_records import serde
from barnabas.wire.coordinator_records.serde import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecord,
    Serde,
)
from barnabas.wire.coordinator_records.transaction_log import TransactionLogValue
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.record import decode_batch
from interop import reference

WAIT_S = 30
SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "300",
}
TP = ids.TopicPartition("t", 0)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of an Apache Kafka with groups of both protocols, and transactions."""
    kafka = reference.start(tmp_path_factory.mktemp("kafka"), SETTINGS)
    try:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result()
        read(kafka, "classic", "a-classic-group", ["t"])
        read(kafka, "consumer", "a-group-of-consumers", ["^t.*"])
        write_in_transactions(kafka)
    finally:
        kafka.stop()
    return kafka.data_dir


def member(kafka: Broker, protocol: str, group: str, instance: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "group.instance.id": instance,
            "enable.auto.commit": False,
            "client.id": "a client",
        }
    )


def read(kafka: Broker, protocol: str, group: str, topics: list[str]) -> None:
    """Let two static members share a topic, and one of them commit."""
    members = [member(kafka, protocol, group, instance) for instance in ("one", "two")]
    for each in members:
        each.subscribe(topics)
    deadline_s = time.monotonic() + WAIT_S
    while any(len(each.assignment()) != 1 for each in members):
        assert time.monotonic() < deadline_s, f"{group} does not settle"
        for each in members:
            each.poll(0.1)
    [tp] = members[0].assignment()
    committed = TopicPartition(tp.topic, tp.partition, 0, metadata="so far")
    members[0].commit(offsets=[committed], asynchronous=False)
    for each in members:
        each.close()


def write_in_transactions(kafka: Broker) -> None:
    """Write a committed transaction with offsets, an aborted one, and one that stays open."""
    settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": "a transactional id"}
    producer = Producer(settings)
    producer.init_transactions(WAIT_S)
    reader = member(kafka, "classic", "a-group-in-transactions", "one")
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce("t", "v", partition=0)
        metadata = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, 1)], metadata)
        producer.flush()
        if end is not None:
            end()
    reader.close()


def records(data_dir: Path, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Return key and value of every record in a topic's files, without markers."""
    for path in sorted(data_dir.glob(f"{topic}-*/*.log")):
        data = path.read_bytes()
        for start, header in iterate_headers(data):
            for record in decode_batch(data, start, header) if not header.is_control else ():
                assert record.key is not None
                yield record.key, record.value


def kinds(data_dir: Path, topic: str, records_of: Serde) -> set[str]:
    """Return the record types in a topic, each of which must be encoded unchanged; "-" marks tombstones."""
    found = set()
    for key, value in records(data_dir, topic):
        record: Any = records_of.decode(key, value)
        assert isinstance(record, CoordinatorRecord)
        assert serde.encode(*record) == (key, value)
        found.add(type(record.key).__name__.removesuffix("Key") + ("-" if value is None else ""))
    return found


def test_every_group_record_is_decoded(data_dir: Path) -> None:
    found = kinds(data_dir, "__consumer_offsets", GROUP_RECORDS)
    assert {
        "OffsetCommit",
        "GroupMetadata",
        "ConsumerGroupMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression",
    } <= found, found


def test_every_transaction_record_is_decoded(data_dir: Path) -> None:
    assert kinds(data_dir, "__transaction_state", TRANSACTION_RECORDS) == {"TransactionLog"}


@pytest.fixture(scope="module")
def barnabas(data_dir: Path) -> Iterator[Broker]:
    """Start Barnabas on Kafka's data."""
    for path in data_dir.glob("*cluster_metadata*"):
        shutil.rmtree(path)
    broker = START["barnabas"](data_dir.parent, SETTINGS)
    yield broker
    broker.stop()


def test_barnabas_continues_kafkas_groups(barnabas: Broker) -> None:
    with BlockingClient(barnabas.bootstrap) as client:
        types = {group.group_id: group.type for group in client.groups.list()}
        assert types == {
            "a-classic-group": "classic",
            "a-group-of-consumers": "consumer",
            "a-group-in-transactions": "classic",
        }
        for name in ("a-classic-group", "a-group-of-consumers"):
            [found] = client.groups.offsets(name).values()
            assert (found.offset, found.metadata.rstrip("\0")) == (
                0,
                "so far",
            )  # the client sends the NUL, too
        assert [found.offset for found in client.groups.offsets("a-group-in-transactions").values()] == [1]
    read(barnabas, "classic", "a-classic-group", ["t"])
    read(barnabas, "consumer", "a-group-of-consumers", ["^t.*"])


def test_barnabas_continues_kafkas_producers(data_dir: Path, barnabas: Broker) -> None:
    found = [TRANSACTION_RECORDS.decode(*each) for each in records(data_dir, "__transaction_state")]
    values = [each.value for each in found if isinstance(each, CoordinatorRecord)]
    known = [value.producer_id for value in values if isinstance(value, TransactionLogValue)]
    with BlockingClient(barnabas.bootstrap) as client:
        assert client.admin.send(InitProducerIdRequest(None, 60_000)).producer_id > max(known)
        left = client.transactions.describe("a transactional id")
        assert (left.state, left.producer_id) == ("Ongoing", known[-1])
        write_in_transactions(barnabas)
        with client.consumer({TP: EARLIEST}, stop_at_end=True, isolation=Isolation.READ_COMMITTED) as reader:
            assert [record.value for record in reader] == [b"v", b"v"]
