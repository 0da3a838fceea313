"""CreateTopics: every error of its table, independently for each topic."""

import re
import threading

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import CreatableTopic
from support.admin import create, describe, described, new_topic
from support.batches import batch
from support.wire import Wire

DYNAMIC_TOPIC, DEFAULT = 1, 5

GOOD = new_topic("good")

REFUSED = {
    "already there": (new_topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "'there'"),
    "empty name": (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
    "dot": (new_topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.'"),
    "dots": (new_topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..'"),
    "letters": (new_topic("größe"), ErrorCode.INVALID_TOPIC_EXCEPTION, "größe"),
    "slash": (new_topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "a/b"),
    "250 characters": (new_topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "250"),
    "collision": (new_topic("a.b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "'a_b'"),
    "reserved": (new_topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "__cluster_metadata"),
    "0 partitions": (new_topic("t", 0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    "-2 partitions": (new_topic("t", -2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    "0 replicas": (new_topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
    "-2 replicas": (new_topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
    "2 replicas": (new_topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, "2"),
    "no such config": (new_topic("t", configs={"retention.msec": "1"}), ErrorCode.INVALID_CONFIG, "retention.msec"),
    "bad config": (new_topic("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, "soon"),
    "null config": (new_topic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "retention.ms"),
    "no such broker": (new_topic("t", assignments={0: [99]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "99"),
    "no broker": (new_topic("t", assignments={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty"),
    "a gap": (new_topic("t", assignments={0: [1], 2: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, r"\[0, 2\]"),
    "broker twice": (new_topic("t", assignments={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice"),
    "both": (new_topic("t", 1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST, "assignment"),
    "both factor": (new_topic("t", -1, 1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST, "assignment"),
}  # fmt: skip


@pytest.fixture
def wire_with_topic(kafka: EmbeddedBroker, wire: Wire) -> Wire:
    for name in ("there", "a_b"):
        kafka.create_topic(name)
    return wire


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_topic_is_rejected_with_the_reason_and_others_are_created(
    kafka: EmbeddedBroker, wire_with_topic: Wire, case: str, validate_only: bool
) -> None:
    topic, code, message = REFUSED[case]
    before = kafka.topics()
    results = create(wire_with_topic, topic, GOOD, validate_only=validate_only)
    refused = results[topic.name]
    assert ErrorCode(refused.error_code) is code
    assert re.search(message, refused.error_message or ""), refused.error_message
    assert results["good"].error_code == ErrorCode.NONE
    assert kafka.topics() == before | ({} if validate_only else {"good": 1})


def test_a_duplicate_name_has_one_error(kafka: EmbeddedBroker, wire: Wire) -> None:
    results = create(wire, new_topic("twice", 1), new_topic("twice", 2), GOOD)
    assert set(results) == {"twice", "good"}
    assert results["twice"].error_code == ErrorCode.INVALID_REQUEST
    assert kafka.topics() == {"good": 1}


def test_of_two_colliding_names_in_one_request_one_is_created(kafka: EmbeddedBroker, wire: Wire) -> None:
    results = create(wire, new_topic("x.y"), new_topic("x_y"))
    codes = [results[name].error_code for name in ("x.y", "x_y")]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert list(kafka.topics()) == ["x.y"]


@pytest.mark.kafka_settings({"num.partitions": "3"})
def test_minus_1_means_the_brokers_defaults(kafka: EmbeddedBroker, wire: Wire) -> None:
    result = create(wire, new_topic("t"))["t"]
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert kafka.topics() == {"t": 3}


def test_the_response_has_id_partitions_and_configs_with_their_sources(wire: Wire) -> None:
    result = create(wire, new_topic("t", 2, configs={"retention.ms": "5000"}))["t"]
    assert result.topic_id == wire.topic_id("t") != ZERO_UUID
    configs = {config.name: config for config in result.configs or []}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5000", DYNAMIC_TOPIC)
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == ("delete", DEFAULT)
    assert not any(config.is_sensitive or config.read_only for config in configs.values())


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_topics_and_returns_its_fields(wire: Wire, version: int) -> None:
    results = create(wire, new_topic("t", 2, 1), new_topic("?"), version=version)
    assert results["t"].error_code == ErrorCode.NONE
    assert results["?"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'?'" in (results["?"].error_message or "")
    assert results["t"].num_partitions == (2 if version >= 5 else -1)
    assert (results["t"].topic_id == ZERO_UUID) == (version < 7)


def test_a_name_may_have_249_characters_including_all_valid_ones(wire: Wire) -> None:
    names = ["x" * 249, "A-Z.a_z-09"]
    assert {result.error_code for result in create(wire, *map(new_topic, names)).values()} == {ErrorCode.NONE}


def test_validate_only_responds_as_for_a_creation(kafka: EmbeddedBroker, wire: Wire) -> None:
    result = create(wire, new_topic("t", 2, configs={"retention.ms": "1"}), validate_only=True)["t"]
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    assert kafka.topics() == {}


def test_replicas_can_be_assigned_manually(wire: Wire) -> None:
    broker_id = broker_id_of(wire)
    result = create(wire, new_topic("t", assignments={1: [broker_id], 0: [broker_id]}))["t"]
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)
    assert {tuple(partition.replica_nodes) for partition in described(wire, "t").partitions} == {(broker_id,)}


def broker_id_of(wire: Wire) -> int:
    return describe(wire).brokers[0].node_id


def test_a_request_for_more_than_10_000_partitions_is_rejected_as_a_whole(wire: Wire) -> None:
    for count, code in ((1, ErrorCode.NONE), (2, ErrorCode.POLICY_VIOLATION)):
        results = create(wire, new_topic("a", 9_999), new_topic("b", count), validate_only=True)
        assert [results[name].error_code for name in "ab"] == [code, code]


def test_a_created_topic_accepts_records_immediately(wire: Wire) -> None:
    for number in range(20):
        create(wire, new_topic(f"t{number}"))
        assert wire.produce(f"t{number}", batch(b"x")).error_code == ErrorCode.NONE


def test_one_of_many_concurrent_creations_of_a_topic_succeeds(kafka: EmbeddedBroker) -> None:
    codes: list[int] = []

    def make(topic: CreatableTopic) -> None:
        with Wire(kafka.port) as own:
            codes.append(create(own, topic)["same"].error_code)

    makers = [threading.Thread(target=make, args=[new_topic("same", count)]) for count in range(1, 11)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(codes) == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 9
    assert len(list(kafka.directory.glob("same-*"))) == kafka.topics()["same"]
