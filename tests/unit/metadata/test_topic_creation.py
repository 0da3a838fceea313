import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import METADATA_TOPIC_UUID, ZERO_UUID, uuid_to_text
from barnabas.metadata.brokers import BROKERS, decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import NEVER
from barnabas.metadata.topic_creation import (
    DEFAULT,
    PARTITIONS_PER_REQUEST_MAX,
    TopicCreationResult,
    TopicToCreate,
    decide_create,
    random_topic_id,
)
from barnabas.metadata.topics import TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import RULES, broker, cluster, manually_assigned, new_topic, replayed

ONE = cluster(1)
THREE = cluster(3)


def create(
    image: MetadataImage, *topics: TopicToCreate, validate_only: bool = False, **rules: Any
) -> Decision[list[TopicCreationResult]]:
    rng = random.Random(1)
    return decide_create(image, topics, replace(RULES, **rules), rng, validate_only=validate_only)


def refusal(image: MetadataImage, topic: TopicToCreate, **rules: Any) -> KafkaError:
    """Return the error of a single topic."""
    decision = create(image, topic, **rules)
    assert decision.changes == ()
    [outcome] = decision.response
    assert outcome.topic is None
    assert outcome.error is not None
    return outcome.error


def made(decision: Decision[list[TopicCreationResult]], name: str) -> TopicImage:
    [outcome] = [outcome for outcome in decision.response if outcome.name == name]
    assert outcome.error is None, outcome.error
    assert outcome.topic is not None
    return outcome.topic


def test_a_topic_is_created_with_the_requested_counts() -> None:
    topic = made(create(THREE, new_topic("t", 4, 2)), "t")
    assert (topic.partition_count, topic.replication_factor) == (4, 2)
    image = replayed(THREE, create(THREE, new_topic("t", 4, 2)))
    assert image.topics["t"] == topic
    assert image.topic_by_id(topic.topic_id) == topic


def test_minus_one_means_the_brokers_defaults() -> None:
    decision = create(
        THREE, TopicToCreate("t", DEFAULT, DEFAULT), partition_count_default=5, replication_factor_default=3
    )
    topic = made(decision, "t")
    assert (topic.partition_count, topic.replication_factor) == (5, 3)


def test_manual_assignments_are_used_unchanged() -> None:
    topic = made(create(THREE, manually_assigned("t", [3, 1], [2, 3])), "t")
    assert topic.assignments == ((3, 1), (2, 3))


def test_overrides_are_stored_without_null_values() -> None:
    decision = create(ONE, new_topic("t", configs={"retention.ms": "1", "segment.ms": None}))
    assert decision.response[0].overrides == {"retention.ms": "1"}
    assert dict(replayed(ONE, decision).topic_configs["t"]) == {"retention.ms": "1"}


def test_a_topic_without_overrides_has_no_config_row() -> None:
    for configs in (None, {}, {"segment.ms": None}):
        assert not replayed(ONE, create(ONE, new_topic("t", configs=configs))).topic_configs


def test_the_decision_depends_on_the_absence_of_the_topic() -> None:
    reads = create(ONE, new_topic("a"), new_topic("b")).reads
    assert reads.items() >= {"topics/a": NEVER, "topics/b": NEVER}.items()


COUNTS_BY_HAND = "A manual partition assignment excludes a"


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (new_topic(""), "INVALID_TOPIC_EXCEPTION", "the empty string is not allowed"),
        (new_topic("a/b"), "INVALID_TOPIC_EXCEPTION", "'a/b' has characters other than"),
        (new_topic("x" * 250), "INVALID_TOPIC_EXCEPTION", "250 characters, at most 249"),
        (new_topic("__cluster_metadata"), "INVALID_REQUEST", "topic __cluster_metadata is prohibited."),
        (new_topic("here"), "TOPIC_ALREADY_EXISTS", "Topic 'here' already exists"),
        (new_topic("dotted_name"), "INVALID_TOPIC_EXCEPTION", "collides with topic 'dotted.name'"),
        (new_topic("t", 0), "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
        (new_topic("t", -2), "INVALID_PARTITIONS", "invalid non-positive value"),
        (new_topic("t", 1, 0), "INVALID_REPLICATION_FACTOR", "or -1 to use the default value."),
        (new_topic("t", 1, -2), "INVALID_REPLICATION_FACTOR", "must be larger than 0"),
        (new_topic("t", 1, 4), "INVALID_REPLICATION_FACTOR", "factor of 4 cannot be reached: 3 brokers"),
        (new_topic("t", 1, -1, assignments={0: [1]}), "INVALID_REQUEST", f"{COUNTS_BY_HAND} partition count: it is 1"),
        (new_topic("t", -1, 1, assignments={0: [1]}), "INVALID_REQUEST", f"{COUNTS_BY_HAND} replication factor"),
        (manually_assigned("t", [1], []), "INVALID_REPLICA_ASSIGNMENT", "an empty replica list"),
        (manually_assigned("t", [1, 1]), "INVALID_REPLICA_ASSIGNMENT", "[1, 1] names a broker twice"),
        (manually_assigned("t", [1, 8]), "INVALID_REPLICA_ASSIGNMENT", "broker 8, which is not registered"),
        (manually_assigned("t", [1, 2], [3]), "INVALID_REPLICA_ASSIGNMENT", "[3] has 1 replicas where the other"),
        (TopicToCreate("t", assignments={1: [1]}), "INVALID_REPLICA_ASSIGNMENT", "must be 0 to 0, not [1]"),
        (TopicToCreate("t", assignments={0: [1], 2: [1]}), "INVALID_REPLICA_ASSIGNMENT", "0 to 1, not [0, 2]"),
        (TopicToCreate("t", assignments={-1: [1], 0: [1]}), "INVALID_REPLICA_ASSIGNMENT", "not [-1, 0]"),
    ],
)  # fmt: skip
def test_an_invalid_topic_is_rejected_with_the_reason(topic: TopicToCreate, code: str, message: str) -> None:
    image = cluster(3, new_topic("here"), new_topic("dotted.name"))
    error = refusal(image, topic)
    assert error.code.name == code
    assert message in error.message


def test_configs_are_validated_by_the_given_rules() -> None:
    def check(overrides: Mapping[str, str | None]) -> None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(dict(overrides)))

    error = refusal(ONE, new_topic("t", configs={"a": "b"}), check_configs=check)
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "{'a': 'b'}")


def test_an_unreachable_default_replication_factor_is_rejected() -> None:
    error = refusal(ONE, TopicToCreate("t"), replication_factor_default=3)
    assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_without_an_active_broker_no_topic_is_created() -> None:
    assert refusal(cluster(2, fenced=[1, 2]), new_topic("t")).code is ErrorCode.INVALID_REPLICATION_FACTOR


def states(image: MetadataImage, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Return leader, in-sync replicas and replicas of each partition."""
    topic = image.topics[name]
    found = [image.partition(topic, index) for index in range(topic.partition_count)]
    return [(state.leader, state.isr, state.replicas) for state in found]


def test_fenced_brokers_follow_only_if_there_are_too_few_others() -> None:
    image = cluster(3, fenced=[2])
    topic = made(create(image, new_topic("t", 6, 2)), "t")
    assert {broker for replicas in topic.assignments for broker in replicas} == {1, 3}
    after = replayed(image, create(image, new_topic("u", 2, 3)))
    assert sorted(states(after, "u")) == [(1, (1, 3), (1, 3, 2)), (3, (3, 1), (3, 1, 2))]


def test_a_given_fenced_broker_is_not_in_sync_and_not_alone() -> None:
    image = cluster(3, fenced=[2])
    after = replayed(image, create(image, manually_assigned("h", [2, 1], [1, 3])))
    assert states(after, "h") == [(1, (1,), (2, 1)), (1, (1, 3), (1, 3))]
    refused = refusal(image, manually_assigned("h", [2]))
    assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "All brokers of the manual assignment [2] of partition 0 are fenced" in refused.message


def test_a_creation_is_decided_again_if_one_of_its_brokers_changes() -> None:
    assert create(THREE, manually_assigned("h", [2, 1])).reads.keys() >= {BROKERS.key("1"), BROKERS.key("2")}


def test_cordoned_brokers_get_replicas_only_by_manual_assignment() -> None:
    image = replayed(THREE, decide_register(THREE.brokers, broker(2, cordoned=True)))
    topic = made(create(image, new_topic("t", 20, 2)), "t")
    assert {each for replicas in topic.assignments for each in replicas} == {1, 3}
    assert made(create(image, manually_assigned("u", [2])), "u").assignments == ((2,),)
    alone = replayed(ONE, decide_register(ONE.brokers, broker(1, cordoned=True)))
    error = refusal(alone, new_topic("t"))
    assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "not cordoned" in error.message


def test_one_invalid_topic_does_not_fail_others() -> None:
    decision = create(ONE, new_topic("good"), new_topic("bad", 0), new_topic("fine"))
    assert [(o.name, o.error.code if o.error else None) for o in decision.response] == [
        ("good", None),
        ("bad", ErrorCode.INVALID_PARTITIONS),
        ("fine", None),
    ]
    assert set(replayed(ONE, decision).topics) == {"good", "fine"}


def test_a_duplicate_name_is_rejected_once_and_others_are_created() -> None:
    decision = create(ONE, new_topic("twice"), new_topic("once"), new_topic("twice", 3))
    assert [outcome.name for outcome in decision.response] == ["twice", "once"]
    error = decision.response[0].error
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert set(replayed(ONE, decision).topics) == {"once"}


def test_two_names_of_one_request_must_not_collide() -> None:
    decision = create(ONE, new_topic("a.b"), new_topic("a_b"))
    assert made(decision, "a.b")
    error = decision.response[1].error
    assert error is not None
    assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'a.b'" in error.message


def test_a_rejected_topic_does_not_collide_with_later_ones() -> None:
    assert made(create(ONE, new_topic("a.b", 0), new_topic("a_b")), "a_b")


def test_the_number_of_partitions_in_a_request_is_limited() -> None:
    most = PARTITIONS_PER_REQUEST_MAX
    decision = create(ONE, new_topic("first", most - 1), new_topic("nonsense", -2), new_topic("second", 1))
    assert made(decision, "first").partition_count == most - 1
    assert made(decision, "second").partition_count == 1


@pytest.mark.parametrize(
    "others",
    [
        [new_topic("second", PARTITIONS_PER_REQUEST_MAX)],
        [new_topic("second", 2)],
        [new_topic("second", assignments={0: [1], 1: [1]})],
        [new_topic("second", 2), new_topic("twice"), new_topic("twice")],
    ],
)
def test_a_request_for_too_many_partitions_is_rejected_as_a_whole(others: list[TopicToCreate]) -> None:
    with pytest.raises(KafkaError) as refused:
        create(ONE, new_topic("first", PARTITIONS_PER_REQUEST_MAX - 1), *others)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert refused.value.message == "Excessively large number of partitions per request."


def test_validate_only_returns_the_same_and_changes_nothing() -> None:
    asked = (new_topic("good", 2, configs={"a": "b"}), new_topic("bad", 0))
    checked, done = create(ONE, *asked, validate_only=True), create(ONE, *asked)
    assert (checked.changes, checked.reads) == ((), {})
    assert done.changes
    for one, other in zip(checked.response, done.response, strict=True):
        assert (one.name, one.topic, one.overrides) == (other.name, other.topic, other.overrides)
        assert (one.error is None) == (other.error is None)


def test_a_request_without_topics_is_valid() -> None:
    decision = create(ONE)
    assert (decision.response, decision.changes) == ([], ())


class Scripted(random.Random):
    """An rng whose first bytes are chosen."""

    def __init__(self, *firsts: bytes) -> None:
        super().__init__(1)
        self._firsts = list(firsts)

    def randbytes(self, n: int) -> bytes:
        return self._firsts.pop(0) if self._firsts and n == 6 else super().randbytes(n)


@given(st.integers(0, 2**32))
def test_topic_ids_are_never_reserved_and_never_look_like_options(seed: int) -> None:
    topic_id = random_topic_id(random.Random(seed))
    assert len(topic_id) == 16
    assert topic_id not in (ZERO_UUID, METADATA_TOPIC_UUID)
    assert not uuid_to_text(topic_id).startswith("-")


def test_an_id_that_would_begin_with_a_dash_is_replaced() -> None:
    topic_id = random_topic_id(Scripted(b"\xfb" * 6, b"\x01" * 6))
    assert topic_id[:6] == b"\x01" * 6


def test_the_same_rng_makes_the_same_decisions() -> None:
    assert create(THREE, new_topic("t", 3, 2)) == create(THREE, new_topic("t", 3, 2))
