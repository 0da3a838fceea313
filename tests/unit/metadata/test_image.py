"""An image equals the replay of every commit, and what loading the store returns."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.cluster import decide_form
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_creation import MorePartitions, decide_create_partitions
from barnabas.metadata.producer_ids import decide_allocate_block
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import NEVER, Commit
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.topics import (
    PARTITION_STATES,
    TOPICS,
    PartitionRegistration,
    collision_key,
    partition_key,
)
from support.images import RULES, broker, cluster, new_topic, with_state, with_topics
from support.memory_store import MemoryStore

Command = Callable[[MetadataImage, random.Random], Decision[Any]]
NAMES = st.sampled_from(["a", "b", "c.d", "c_d"])


def _create(name: str, count: int) -> Command:
    topics = [new_topic(name, count, configs={"retention.ms": str(count)} if count % 2 else None)]
    return lambda image, rng: decide_create(image, topics, RULES, rng, validate_only=False)


def _grow(name: str, count: int) -> Command:
    more = [MorePartitions(name, count)]
    return lambda image, rng: decide_create_partitions(image, more, rng, validate_only=False)


def _delete(name: str) -> Command:
    return lambda image, rng: decide_delete(image, [TopicToDelete(name)])


def _expire(image: MetadataImage, rng: random.Random) -> Decision[Any]:
    return decide_remove_deleted(image, [topic.topic_id for topic in image.deleted_topics.values()][:1], 1)


def _register(broker_id: int, fenced: bool) -> Command:
    return lambda image, rng: decide_register(image.brokers, broker(broker_id, fenced=fenced))


def _lead(name: str, leader: int) -> Command:
    def decide(image: MetadataImage, rng: random.Random) -> Decision[Any]:
        topic = image.topics.get(name)
        if topic is None:
            return Decision(None)
        state = PartitionRegistration(leader, leader + 1, topic.assignments[0])
        return Decision(None, (PARTITION_STATES.put(partition_key(topic.topic_id, 0), state),))

    return decide


COMMANDS = st.one_of(
    st.builds(_create, NAMES, st.integers(1, 4)),
    st.builds(_grow, NAMES, st.integers(1, 6)),
    st.builds(_delete, NAMES),
    st.just(_expire),
    st.builds(_register, st.integers(1, 3), st.booleans()),
    st.builds(_lead, NAMES, st.integers(-1, 3)),
    st.just(lambda image, rng: decide_allocate_block(image.producer_ids)),
    st.just(lambda image, rng: decide_form(image.cluster, bytes(16), None)),
)


def check(image: MetadataImage) -> None:
    """Check the invariants of an image."""
    assert {topic.topic_id: name for name, topic in image.topics.items()} == dict(image.topic_names)
    assert set(image.topic_configs) <= set(image.topics)
    keys = {collision_key(name): name for name in image.topics}
    keys.pop(None, None)
    assert dict(image.taken_names) == keys
    for name, topic in image.topics.items():
        assert topic.name == name
        assert topic.topic_id.hex() not in image.deleted_topics
        assert image.topic_by_id(topic.topic_id) is topic
    for key in image.partition_states:
        topic_id, _, index = key.partition("/")
        found = image.topic_by_id(bytes.fromhex(topic_id))
        assert found is not None
        assert int(index) < found.partition_count


@settings(max_examples=150)
@given(commands=st.lists(COMMANDS, max_size=25), seed=st.integers(0, 1000))
def test_loading_the_store_equals_replaying_every_commit(commands: list[Command], seed: int) -> None:
    rng, store, image = random.Random(seed), MemoryStore(), MetadataImage()
    for command in commands:
        decision = command(image, rng)
        if decision.changes:
            store.write(decision.reads, decision.changes)
            image = image.replay(store.commits[-1])
        check(image)
    loaded = MetadataImage.load(store.revision, store.items.values())
    assert loaded == image
    for record_type in record_types().values():
        table, other = image.table(record_type), loaded.table(record_type)
        assert table.revisions == other.revisions
        assert set(table.rows) == set(table.revisions)
    again = MetadataImage()
    for commit in store.commits:
        again = again.replay(commit)
    assert again == image


def test_an_image_is_not_changed_by_replaying_on_it() -> None:
    before = cluster(1, new_topic("a"))
    copy = cluster(1, new_topic("a"))
    with_topics(before, new_topic("b"))
    assert before == copy


def test_one_commit_may_change_many_record_types() -> None:
    image = cluster(1, new_topic("a", configs={"retention.ms": "1"}))
    assert (set(image.topics), set(image.topic_configs)) == ({"a"}, {"a"})
    assert image.topics.revision("a") == image.topic_configs.revision("a") == image.revision


def test_a_topic_replaced_by_one_change_leaves_its_old_id() -> None:
    image = cluster(1, new_topic("a"))
    other = replace(image.topics["a"], topic_id=b"o" * 16)
    image = image.replay(Commit(image.revision + 1, (TOPICS.put("a", other),)))
    assert image.topics["a"] == other
    assert dict(image.topic_names) == {other.topic_id: "a"}


def test_commits_are_replayed_in_order() -> None:
    image = cluster(1)
    with pytest.raises(AssertionError):
        image.replay(Commit(image.revision, ()))


def test_gaps_between_revisions_are_accepted() -> None:
    image = cluster(1).replay(Commit(1_000, (TOPIC_CONFIGS.put("a", {"x": "y"}),)))
    assert (image.revision, image.topic_configs.revision("a")) == (1_000, 1_000)


def test_a_partition_has_its_initial_state_until_one_is_written() -> None:
    image = cluster(2, new_topic("a", 2, 2))
    topic = image.topics["a"]
    replicas = topic.assignments[1]
    assert image.partition(topic, 1) == PartitionRegistration(replicas[0], 0, replicas, replicas=replicas)
    assert image.partition_revision(topic, 1) == NEVER
    state = PartitionRegistration(2, 5, (2,), 9)
    image = with_state(image, topic, 1, state)
    assert image.partition(topic, 1) == replace(state, replicas=replicas)
    assert image.partition_revision(topic, 1) == image.revision
    assert image.partition(topic, 0).leader_epoch == 0


def test_an_unknown_id_is_not_a_topic() -> None:
    assert cluster(1, new_topic("a")).topic_by_id(bytes(16)) is None
