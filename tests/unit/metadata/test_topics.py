import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.store import NEVER
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    NAME_LENGTH_MAX,
    PARTITION_STATES,
    TOPICS,
    DeletedTopic,
    PartitionRegistration,
    TopicImage,
    check_name,
    collision_key,
    initial_state,
    partition_key,
    topic_put,
    unknown_topic,
    unknown_topic_id,
)
from barnabas.wire.errors import ErrorCode, KafkaError

TOPIC_ID = bytes(range(16))
REPLICAS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True).map(tuple)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "-", "_", "...", "x" * NAME_LENGTH_MAX])
def test_valid_names_pass(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "it has 250 characters, at most 249 are allowed"),
        ("a b", "'a b' has characters other than"),
        ("a/b", "'a/b' has characters other than"),
        ("straße", "'straße' has characters other than"),
        ("a\n", "has characters other than"),
        ("a\0", "has characters other than"),
    ],
)
def test_invalid_names_are_rejected_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_name(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert why in raised.value.message


@pytest.mark.parametrize("size", [250, 32_767])
def test_the_error_for_a_very_long_name_fits_into_a_message(size: int) -> None:
    with pytest.raises(KafkaError) as raised:
        check_name("x" * size)
    assert len(raised.value.message) <= 1000


def test_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("a.b.d")


def test_a_name_without_either_collides_with_no_other() -> None:
    assert collision_key("a-b-c") is None


@pytest.mark.parametrize(("name", "keys"), [("a", ["topics/a"]), ("a.b", ["topics/a.b", "taken_names/a_b"])])
def test_a_topic_is_created_if_neither_it_nor_a_colliding_one_exists(name: str, keys: list[str]) -> None:
    changes, absent = topic_put(TopicImage(name, TOPIC_ID, ((1,),)))
    assert [change.key for change in changes] == keys
    assert absent == dict.fromkeys(keys, NEVER)


def test_a_topic_has_its_counts_of_partitions_and_replicas() -> None:
    topic = TopicImage("t", TOPIC_ID, ((1, 2), (2, 3), (3, 1)))
    assert (topic.partition_count, topic.replication_factor) == (3, 2)


def test_a_new_partition_is_led_by_its_preferred_replica_with_all_in_sync() -> None:
    assert initial_state((3, 1, 2)) == PartitionRegistration(3, 0, isr=(3, 1, 2), replicas=(3, 1, 2))


def test_a_partitions_key_contains_the_topic_id() -> None:
    assert partition_key(TOPIC_ID, 12) == "000102030405060708090a0b0c0d0e0f/12"


@given(st.binary(min_size=16, max_size=16), st.lists(REPLICAS, min_size=1, max_size=5).map(tuple))
def test_a_topic_round_trips_through_the_store(
    topic_id: bytes, assignments: tuple[tuple[int, ...], ...]
) -> None:
    topic = TopicImage("t.x-1", topic_id, assignments)
    change = TOPICS.put(topic.name, topic)
    assert change.key == "topics/t.x-1"
    assert change.value is not None
    assert TOPICS.decode(change.value) == topic


@given(
    st.integers(-1, 9),
    st.integers(0, 2**31 - 1),
    REPLICAS,
    st.integers(0, 2**31 - 1),
    st.lists(REPLICAS, max_size=3),
)
def test_a_partitions_state_round_trips_through_the_store(
    leader: int,
    leader_epoch: int,
    isr: tuple[int, ...],
    partition_epoch: int,
    partitions: list[tuple[int, ...]],
) -> None:
    state = PartitionRegistration(leader, leader_epoch, isr, partition_epoch, *partitions)
    value = PARTITION_STATES.put("k/0", state).value
    assert value is not None
    assert PARTITION_STATES.decode(value) == state


def test_a_deleted_topic_round_trips_through_the_store() -> None:
    deleted = DeletedTopic("t", TOPIC_ID)
    value = DELETED_TOPICS.put(TOPIC_ID.hex(), deleted).value
    assert value is not None
    assert DELETED_TOPICS.decode(value) == deleted


def test_errors_name_unknown_topics() -> None:
    assert unknown_topic("orders").code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "'orders'" in unknown_topic("orders").message
    assert unknown_topic_id("abc").code is ErrorCode.UNKNOWN_TOPIC_ID
    assert "abc" in unknown_topic_id("abc").message
