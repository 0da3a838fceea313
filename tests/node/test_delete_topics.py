"""DeleteTopics and CreatePartitions."""

import time

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicState
from support.admin import create, delete, described, grow, more_partitions, new_topic
from support.batches import batch, values_of
from support.wire import Wire

UNKNOWN_ID = bytes(range(16))


@pytest.fixture
def wire_with_topics(kafka: EmbeddedBroker, wire: Wire) -> Wire:
    for name in ("a", "b"):
        kafka.create_topic(name, partitions=2)
    return wire


def test_a_topic_is_deleted_by_name_or_by_id(kafka: EmbeddedBroker, wire_with_topics: Wire) -> None:
    id_of_b = wire_with_topics.topic_id("b")
    by_name, by_id = delete(wire_with_topics, "a", id_of_b)
    assert (by_name.name, by_name.error_code) == ("a", ErrorCode.NONE)
    assert (by_id.name, by_id.topic_id, by_id.error_code) == ("b", id_of_b, ErrorCode.NONE)
    assert kafka.topics() == {}


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_and_returns_its_fields(
    kafka: EmbeddedBroker, wire_with_topics: Wire, version: int
) -> None:
    gone, missing = delete(wire_with_topics, "a", "nope", version=version)
    assert (gone.name, gone.error_code) == ("a", ErrorCode.NONE)
    assert (missing.name, missing.error_code) == ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (missing.error_message is not None) == (version >= 5)
    assert kafka.topics() == {"b": 2}


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'nope'"),
        (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, "AAECAwQFBgcICQoLDA0ODw"),
        (DeleteTopicState(name=None, topic_id=ZERO_UUID), ErrorCode.INVALID_REQUEST, "neither"),
        (DeleteTopicState(name="a", topic_id=UNKNOWN_ID), ErrorCode.INVALID_REQUEST, "both"),
    ],
)
def test_a_failed_deletion_is_reported_and_others_succeed(
    kafka: EmbeddedBroker, wire_with_topics: Wire, requested: str, code: ErrorCode, message: str
) -> None:
    results = delete(wire_with_topics, requested, "b")
    codes = {result.name: ErrorCode(result.error_code) for result in results}
    assert codes.pop("b") is ErrorCode.NONE
    assert list(codes.values()) == [code]
    assert any(message in (result.error_message or "") for result in results)
    assert kafka.topics() == {"a": 2}


@pytest.mark.kafka_settings({"delete.topic.enable": "false"})
@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_disabled(
    kafka: EmbeddedBroker, wire_with_topics: Wire, version: int, code: ErrorCode
) -> None:
    assert delete(wire_with_topics, "a", version=version)[0].error_code == code
    assert kafka.topics() == {"a": 2, "b": 2}


@pytest.mark.kafka_settings({"log.segment.delete.delay.ms": "100", "barnabas.trash.retention.ms": "0"})
def test_deletion_is_asynchronous_on_disk(kafka: EmbeddedBroker, wire_with_topics: Wire) -> None:
    wire_with_topics.produce("a", batch(b"x"))
    delete(wire_with_topics, "a")
    renamed = list(kafka.directory.glob("a-*"))
    assert len(renamed) == 2
    assert all(path.name.endswith("-delete") for path in renamed)
    deadline_s = time.monotonic() + 10
    while list(kafka.directory.glob("a-*")) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert list(kafka.directory.glob("a-*")) == []


def test_a_recreated_topic_is_empty_and_has_another_id(kafka: EmbeddedBroker, wire_with_topics: Wire) -> None:
    old_id = wire_with_topics.topic_id("a")
    wire_with_topics.produce("a", batch(b"old"))
    for _ in range(3):
        delete(wire_with_topics, "a")
        create(wire_with_topics, new_topic("a"))
    with Wire(kafka.port) as wire:
        assert wire.topic_id("a") != old_id
        assert values_of(wire.fetch("a").records) == []
        assert wire.produce("a", batch(b"new")).base_offset == 0


# CreatePartitions


@pytest.mark.parametrize("version", range(4))
def test_a_topic_with_more_partitions_keeps_its_records(
    kafka: EmbeddedBroker, wire_with_topics: Wire, version: int
) -> None:
    wire_with_topics.produce("a", batch(b"x"))
    assert grow(wire_with_topics, more_partitions("a", 5), version=version)["a"].error_code == ErrorCode.NONE
    assert kafka.topics() == {"a": 5, "b": 2}
    assert values_of(wire_with_topics.fetch("a").records) == [b"x"]
    assert wire_with_topics.produce("a", batch(b"y"), partition=4).base_offset == 0


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (more_partitions("nope", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nope"),
        (more_partitions("a", 2), ErrorCode.INVALID_PARTITIONS, "2"),
        (more_partitions("a", 1), ErrorCode.INVALID_PARTITIONS, "1"),
        (more_partitions("a", 0), ErrorCode.INVALID_PARTITIONS, "0"),
        (more_partitions("a", -1), ErrorCode.INVALID_PARTITIONS, "-1"),
        (more_partitions("a", 20_000), ErrorCode.INVALID_PARTITIONS, "10000"),
        (more_partitions("a", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "2 additional"),
        (more_partitions("a", 3, [[99]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "99"),
        (more_partitions("a", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice"),
    ],
)
def test_a_failed_partition_increase_is_reported_and_others_succeed(
    kafka: EmbeddedBroker,
    wire_with_topics: Wire,
    requested: object,
    code: ErrorCode,
    message: str,
    validate_only: bool,
) -> None:
    results = grow(wire_with_topics, requested, more_partitions("b", 3), validate_only=validate_only)
    assert results.pop("b").error_code == ErrorCode.NONE
    [refused] = results.values()
    assert ErrorCode(refused.error_code) is code
    assert message in (refused.error_message or "")
    assert kafka.topics() == {"a": 2, "b": 2 if validate_only else 3}


def test_a_duplicate_topic_is_rejected(kafka: EmbeddedBroker, wire_with_topics: Wire) -> None:
    results = grow(wire_with_topics, more_partitions("a", 3), more_partitions("a", 4))
    assert results["a"].error_code == ErrorCode.INVALID_REQUEST
    assert kafka.topics()["a"] == 2


def test_new_partitions_can_be_assigned_manually(kafka: EmbeddedBroker, wire_with_topics: Wire) -> None:
    broker_id = kafka.server.broker.broker_id
    assert grow(wire_with_topics, more_partitions("a", 3, [[broker_id]]))["a"].error_code == ErrorCode.NONE
    assert described(wire_with_topics, "a").partitions[2].replica_nodes == [broker_id]


def test_keys_may_move_to_new_partitions_and_stored_records_stay(
    kafka: EmbeddedBroker, wire_with_topics: Wire
) -> None:
    keys = [str(number) for number in range(50)]
    for key in keys:
        kafka.produce("a", "before", key=key)
    grow(wire_with_topics, more_partitions("a", 5))
    with BlockingClient(kafka.bootstrap) as client, client.producer() as producer:
        for key in keys:
            producer.send_and_wait("a", b"after", key=key.encode())
    records = kafka.records("a", count=100)
    before = {record.key: record.partition for record in records if record.value == b"before"}
    after = {record.key: record.partition for record in records if record.value == b"after"}
    assert (set(before.values()), set(after.values())) == ({0, 1}, {0, 1, 2, 3, 4})
    assert before.keys() == after.keys()
