"""Requests that change more than one commit of the store may."""

import random
from collections.abc import Sequence

import pytest

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_creation import TopicCreationResult, TopicToCreate, decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.metadata.writer import MetadataWriter
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import RULES, new_topic, register_brokers
from support.loop import in_virtual_time, on_loop
from support.memory_store import MemoryStore


async def started(changes_max: int) -> tuple[MemoryStore, MetadataWriter]:
    store = MemoryStore(changes_max=changes_max)
    writer = MetadataWriter(store)
    await writer.start()
    await register_brokers(writer, 1)
    return store, writer


def creation(image: MetadataImage, topics: Sequence[TopicToCreate]) -> Decision[list[TopicCreationResult]]:
    return decide_create(image, topics, RULES, random.Random(1), validate_only=False)


def failed(new: TopicToCreate, error: KafkaError) -> TopicCreationResult:
    return TopicCreationResult(new.name, error=error)


async def create(
    writer: MetadataWriter, *names: str, timeout_ms: int | None = None
) -> list[TopicCreationResult]:
    topics = [new_topic(name) for name in names]
    return await writer.write_each(topics, creation, failed, timeout_ms, key=lambda new: new.name)


@pytest.mark.parametrize(("changes_max", "commits_count"), [(100, 1), (10, 1), (5, 3), (2, 9)])
@on_loop
async def test_a_request_is_committed_in_as_few_halves_as_the_store_allows(
    changes_max: int, commits_count: int
) -> None:
    _, writer = await started(changes_max)
    before = writer.statistics()["commits_count"]
    names = [f"t{number}" for number in range(9)]
    created = await create(writer, *names)
    assert [outcome.name for outcome in created] == names
    assert not any(outcome.error for outcome in created)
    assert sorted(writer.image.topics) == names
    assert writer.statistics()["commits_count"] - before == commits_count
    await writer.stop()


@on_loop
async def test_a_resource_that_is_requested_twice_is_refused_in_parts_too() -> None:
    _, writer = await started(4)
    created = await create(writer, "a", "b", "c", "d", "e", "f", "a")
    errors = {outcome.name: outcome.error and outcome.error.code for outcome in created}
    assert errors == {"a": ErrorCode.INVALID_REQUEST} | dict.fromkeys("bcdef")
    assert sorted(writer.image.topics) == list("bcdef")
    await writer.stop()


@on_loop
async def test_one_resource_that_is_too_large_fails() -> None:
    _, writer = await started(1)
    with pytest.raises(KafkaError, match=r"Cannot write to the metadata store: .* are too many") as raised:
        await create(writer, "a")
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    errors = [outcome.error for outcome in await create(writer, "a", "b")]
    assert [error and error.code for error in errors] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    await writer.stop()


@in_virtual_time
async def test_the_timeout_is_that_of_all_parts_which_are_still_written() -> None:
    store, writer = await started(3)
    store.hold()
    with pytest.raises(KafkaError, match="not committed within 500 ms"):
        await create(writer, *"abcdef", timeout_ms=500)
    store.release()
    await writer.wait_for_revision(5)
    assert sorted(writer.image.topics) == list("abcdef")
    await writer.stop()


@on_loop
async def test_a_topic_with_many_partition_states_is_deleted_in_one_small_commit() -> None:
    store, writer = await started(10)
    [created] = await writer.write_each([new_topic("t", 100)], creation, failed)
    assert created.topic is not None
    topic_id = created.topic.topic_id
    for index in range(100):
        state = PARTITION_STATES.put(partition_key(topic_id, index), PartitionRegistration(1, 1, (1,)))
        store.write({}, (state,))
    await writer.wait_for_revision(store.revision)
    assert len(writer.image.partition_states) == 100
    [deleted] = await writer.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
    assert deleted.error is None
    assert not writer.image.partition_states
    await writer.stop()


@on_loop
async def test_a_partition_state_that_is_written_during_the_deletion_does_not_outlive_its_topic() -> None:
    store, writer = await started(10)
    [created] = await writer.write_each([new_topic("t")], creation, failed)
    assert created.topic is not None
    state = PARTITION_STATES.put(partition_key(created.topic.topic_id, 0), PartitionRegistration(1, 1, (1,)))

    def decide(image: MetadataImage) -> Decision[object]:
        if not image.partition_states and store.revision == image.revision:
            store.write({}, (state,))
        return decide_delete(image, [TopicToDelete("t")])

    await writer.write(decide)
    assert writer.statistics()["conflicts_count"] == 1
    assert not writer.image.topics
    assert not writer.image.partition_states
    await writer.stop()
