import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.worker import Worker
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import CLIENT_METRICS_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import KEY, decide_allocate_block
from barnabas.metadata.store import Conflict, StoreChange, StoreError
from barnabas.metadata.topic_creation import TopicCreationResult, decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import TOPICS
from barnabas.metadata.writer import REPLAYED_BYTES_MAX, Listener, MetadataWriter
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import RULES, broker, new_topic
from support.loop import on_loop, turns
from support.memory_store import MemoryStore


@asynccontextmanager
async def writers(store: MemoryStore, count: int = 1) -> AsyncIterator[list[MetadataWriter]]:
    """Writers on one store, with broker 1 registered."""
    made = [MetadataWriter(store) for _ in range(count)]
    for writer in made:
        await writer.start()
    await made[0].write(lambda image: decide_register(image.brokers, broker(1)))
    for writer in made:
        await writer.wait_for_revision(store.revision)
    try:
        yield made
    finally:
        for writer in made:
            await writer.stop()


def create_decision(
    *names: str, seed: int = 0
) -> Callable[[MetadataImage], Decision[list[TopicCreationResult]]]:
    rng = random.Random(seed)
    return lambda image: decide_create(
        image, [new_topic(name) for name in names], RULES, rng, validate_only=False
    )


async def create(writer: MetadataWriter, *names: str, seed: int = 0) -> list[ErrorCode]:
    outcomes = await writer.write(create_decision(*names, seed=seed))
    return [outcome.error.code if outcome.error else ErrorCode.NONE for outcome in outcomes]


@on_loop
async def test_a_write_returns_once_the_writers_own_image_has_it() -> None:
    async with writers(MemoryStore()) as [writer]:
        assert await create(writer, "a") == [ErrorCode.NONE]
        assert "a" in writer.image.topics


@on_loop
async def test_one_of_two_writers_that_create_a_topic_wins() -> None:
    store = MemoryStore()
    async with writers(store, 2) as [one, two]:
        codes = await asyncio.gather(
            create(one, "a", seed=1), create(two, "a", seed=2), create(one, "a", seed=3)
        )
        assert sorted(code for [code] in codes) == [
            ErrorCode.NONE,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.TOPIC_ALREADY_EXISTS,
        ]
        await asyncio.gather(one.wait_for_revision(store.revision), two.wait_for_revision(store.revision))
        assert one.image == two.image
        assert store.revision == 2
        assert one.conflicts_count + two.conflicts_count == 2


@on_loop
async def test_one_of_two_colliding_names_wins() -> None:
    async with writers(MemoryStore(), 2) as [one, two]:
        codes = await asyncio.gather(create(one, "a.b"), create(two, "a_b"))
        assert sorted(code for [code] in codes) == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


@on_loop
async def test_other_topics_of_a_request_that_lost_a_name_are_created() -> None:
    async with writers(MemoryStore(), 2) as [one, two]:
        first, second = await asyncio.gather(create(one, "a", "b"), create(two, "c", "b"))
        assert first == [ErrorCode.NONE, ErrorCode.NONE]
        assert second == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
        assert set(two.image.topics) == {"a", "b", "c"}


@on_loop
async def test_a_topic_deleted_and_recreated_by_two_writers_is_always_consistent() -> None:
    async with writers(MemoryStore(), 2) as [one, two]:
        await create(one, "a", seed=1)
        await two.wait_for_revision(one.image.revision)
        deleted, made = await asyncio.gather(
            one.write(lambda image: decide_delete(image, [TopicToDelete("a")])), create(two, "a", seed=2)
        )
        assert deleted[0].error is None
        assert made == [ErrorCode.TOPIC_ALREADY_EXISTS]
        assert dict(one.image.topics) == {}


@on_loop
async def test_producer_ids_are_unique() -> None:
    async with writers(MemoryStore(), 3) as several:
        blocks = await asyncio.gather(
            *(writer.write(lambda image: decide_allocate_block(image.producer_ids)) for writer in several * 4)
        )
        assert sorted(block.start for block in blocks) == list(range(0, 12_000, 1000))
        assert several[0].image.producer_ids[KEY] == 12_000


@on_loop
async def test_a_conflicting_decision_is_repeated_on_the_new_image() -> None:
    seen: list[int] = []

    def decide(image: MetadataImage) -> Decision[range]:
        seen.append(image.revision)
        return decide_allocate_block(image.producer_ids)

    async with writers(MemoryStore(), 2) as [one, two]:
        await asyncio.gather(
            two.write(lambda image: decide_allocate_block(image.producer_ids)), one.write(decide)
        )
        assert seen == [1, 2]
        assert one.statistics() == {
            "revision": 3,
            "commits_count": 2,
            "conflicts_count": 1,
            "reloads_count": 0,
            "unknown_outcomes_count": 0,
            "latest_revision_reads_count": 0,
            "waiters_count": 0,
            "requests_with_timeout_count": 0,
        }


@on_loop
async def test_a_slow_write_times_out_and_still_completes() -> None:
    store = MemoryStore()
    async with writers(store) as [writer]:
        store.hold()
        with pytest.raises(KafkaError) as caught:
            await writer.write(create_decision("late"), timeout_ms=1)
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert "1 ms" in caught.value.message
        assert "late" not in writer.image.topics
        assert writer.statistics()["requests_with_timeout_count"] == 1
        store.release()
        await writer.write(create_decision("behind"), timeout_ms=1000)
        assert {"late", "behind"} <= writer.image.topics.keys()
        assert writer.statistics()["requests_with_timeout_count"] == 0


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_write_with_timeout_0_is_not_started(timeout_ms: int) -> None:
    @on_loop
    async def scenario() -> None:
        store = MemoryStore()
        async with writers(store) as [writer]:
            with pytest.raises(KafkaError) as caught:
                await writer.write(create_decision("never"), timeout_ms)
            assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
            await writer.write(create_decision("behind"))
            assert "never" not in writer.image.topics

    scenario()


@on_loop
async def test_an_error_of_a_decision_is_raised() -> None:
    def decide(image: MetadataImage) -> Decision[None]:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not that")

    async with writers(MemoryStore()) as [writer]:
        with pytest.raises(KafkaError, match="not that"):
            await writer.write(decide, timeout_ms=1000)


@on_loop
async def test_a_write_beyond_its_timeout_ends_with_the_writer() -> None:
    store = MemoryStore()
    async with writers(store) as [writer]:
        store.hold()
        with pytest.raises(KafkaError):
            await writer.write(create_decision("never"), timeout_ms=1)
        await writer.stop()
        assert "never" not in writer.image.topics


@on_loop
async def test_a_decision_without_changes_returns_without_a_commit() -> None:
    store = MemoryStore()
    async with writers(store) as [writer]:
        revision = store.revision
        assert await writer.write(lambda image: Decision("as you were")) == "as you were"
        assert store.revision == revision


@on_loop
async def test_an_error_of_a_decision_reaches_the_caller_and_nothing_is_written() -> None:
    def decide(image: MetadataImage) -> Decision[None]:
        raise LookupError("nothing fits")

    store = MemoryStore()
    async with writers(store) as [writer]:
        revision = store.revision
        with pytest.raises(LookupError):
            await writer.write(decide)
        assert store.revision == revision
        assert await create(writer, "a") == [ErrorCode.NONE]


@on_loop
async def test_the_commit_of_a_cancelled_write_is_still_replayed() -> None:
    store = MemoryStore(latency_turns=3)
    async with writers(store) as [writer]:
        writing = asyncio.create_task(create(writer, "a"))
        while store.revision < 2:
            await turns(1)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await writer.wait_for_revision(store.revision)
        assert "a" in writer.image.topics
        assert await create(writer, "b") == [ErrorCode.NONE]


@on_loop
async def test_listeners_see_every_change_in_order_before_the_write_returns() -> None:
    recorded: list[tuple[str, int, int, list[str]]] = []

    def listener(name: str) -> Listener:
        async def record_change(before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
            await turns(3)
            recorded.append((name, before.revision, after.revision, list(changed.of(TOPICS))))

        return record_change

    async with writers(MemoryStore()) as [writer]:
        writer.listen(listener("first"))
        writer.listen(listener("second"))
        await create(writer, "a")
        recorded.append(("written", 0, 0, []))
        await create(writer, "b")
    assert recorded == [
        ("first", 1, 2, ["a"]),
        ("second", 1, 2, ["a"]),
        ("written", 0, 0, []),
        ("first", 2, 3, ["b"]),
        ("second", 2, 3, ["b"]),
    ]


@on_loop
async def test_a_listener_sees_the_new_image() -> None:
    found: list[bool] = []

    async def listener(before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        found.append(writer.image is after)

    async with writers(MemoryStore()) as [writer]:
        writer.listen(listener)
        await create(writer, "a")
    assert found == [True]


@on_loop
async def test_a_writer_starts_from_the_stores_state() -> None:
    store = MemoryStore()
    async with writers(store) as [writer]:
        await create(writer, "a")
    async with writers(store) as [later]:
        assert later.image.revision == 2
        assert await create(later, "a") == [ErrorCode.TOPIC_ALREADY_EXISTS]


@on_loop
async def test_commits_of_other_writers_are_replayed() -> None:
    async with writers(MemoryStore(), 2) as [one, two]:
        await create(one, "a")
        await two.wait_for_revision(one.image.revision)
        assert two.image == one.image


@on_loop
async def test_waiters_for_a_later_revision_keep_waiting() -> None:
    async with writers(MemoryStore()) as [writer]:
        far = asyncio.create_task(writer.wait_for_revision(3))
        await create(writer, "a")
        await turns()
        assert not far.done()
        assert writer.statistics()["waiters_count"] == 1
        await create(writer, "b")
        await far


@on_loop
async def test_a_stopped_writer_keeps_its_image_and_replays_nothing() -> None:
    store = MemoryStore()
    async with writers(store, 2) as [one, two]:
        await two.stop()
        await create(one, "a")
        await turns()
        assert "a" not in two.image.topics
        await two.stop()


@on_loop
async def test_a_failing_store_fails_the_write() -> None:
    class Broken(MemoryStore):
        async def commit(self, reads: object, changes: object, commit_id: str = "") -> int:
            raise OSError("the disk is full")

    writer = MetadataWriter(Broken())
    await writer.start()
    with pytest.raises(OSError, match="the disk is full"):
        await writer.write(lambda image: decide_allocate_block(image.producer_ids))
    await writer.stop()


@on_loop
async def test_a_full_disk_fails_writes_until_there_is_space() -> None:
    class Full(MemoryStore):
        is_full = True

        async def commit(
            self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
        ) -> int:
            if self.is_full:
                raise StoreError("the disk is full")
            return await super().commit(reads, changes, commit_id)

    store = Full()
    writer = MetadataWriter(store)
    await writer.start()
    with pytest.raises(KafkaError, match="the disk is full") as refused:
        await writer.write(lambda image: decide_allocate_block(image.producer_ids))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    store.is_full = False
    assert await writer.write(lambda image: decide_allocate_block(image.producer_ids))
    await writer.stop()


def test_a_conflict_error_names_the_store() -> None:
    assert Conflict(7).revision == 7
    assert "revision 7" in str(Conflict(7))


NAMES = st.sampled_from(["a", "b", "c.d", "c_d"])
STEPS = st.lists(st.tuples(st.integers(0, 2), st.booleans(), NAMES, st.integers(0, 12)), max_size=12)


@settings(max_examples=40)
@given(steps=STEPS, latency_turns=st.integers(0, 4))
def test_any_interleaving_of_writers_is_equivalent_to_a_sequence(
    steps: list[tuple[int, bool, str, int]], latency_turns: int
) -> None:
    @on_loop
    async def scenario() -> None:
        store = MemoryStore(latency_turns)
        async with writers(store, 3) as several:
            balance: dict[str, int] = {"a": 0, "b": 0, "c.d": 0, "c_d": 0}

            async def step(at: int, creates: bool, name: str, delay_turns: int) -> None:
                await turns(delay_turns)
                if creates:
                    [code] = await create(several[at], name, seed=delay_turns)
                    balance[name] += code is ErrorCode.NONE
                else:
                    [outcome] = await several[at].write(
                        lambda image: decide_delete(image, [TopicToDelete(name)])
                    )
                    balance[name] -= outcome.error is None

            await asyncio.gather(*(step(*each) for each in steps))
            for writer in several:
                await writer.wait_for_revision(store.revision)
                assert writer.image == several[0].image
            assert {name for name, count in balance.items() if count} == set(several[0].image.topics)
            assert set(balance.values()) <= {0, 1}
            assert not {"c.d", "c_d"} <= set(several[0].image.topics)

    scenario()


@on_loop
async def test_when_a_listener_fails_every_waiter_gets_the_error() -> None:
    async def listener(before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        raise LookupError("a fault of ours")

    async with writers(MemoryStore()) as [writer]:
        writer.listen(listener)
        writer.on_failure = (failed := asyncio.Event()).set
        results = await asyncio.gather(create(writer, "a"), create(writer, "b"), return_exceptions=True)
        assert ["LookupError: a fault of ours" in str(result) for result in results] == [True, True]
        assert failed.is_set()
        with pytest.raises(KafkaError, match="cannot follow the metadata"):
            await writer.wait_for_revision(writer.image.revision + 1)
        await writer.wait_for_revision(writer.image.revision - 1)


@on_loop
async def test_a_commit_of_large_values_is_replayed_in_another_thread() -> None:
    threads: list[str] = []

    class Watched(Worker):
        async def call(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
            threads.append(function.__qualname__)
            return await super().call(function, *arguments, **keywords)

    store, worker = MemoryStore(), Watched("large-metadata")
    writer = MetadataWriter(store, worker=worker)
    await writer.start()
    try:
        for size_bytes, count in ((10, 0), (REPLAYED_BYTES_MAX, 1)):
            change = CLIENT_METRICS_CONFIGS.put("subscription", {"match": "x" * size_bytes})
            await store.commit({}, (change,))
            await writer.wait_for_revision(store.revision)
            assert len(threads) == count
            assert writer.image.client_metrics_configs["subscription"]["match"] == "x" * size_bytes
    finally:
        await writer.stop()
        worker.close()


@pytest.mark.parametrize(("count", "order"), [(1, "first second other"), (101, "first other second")])
@on_loop
async def test_others_are_served_between_the_listeners_of_a_large_commit(count: int, order: str) -> None:
    log: list[str] = []
    store = MemoryStore()
    async with writers(store) as [writer]:

        async def first(*_: object) -> None:
            log.append("first")
            asyncio.get_running_loop().call_soon(log.append, "other")

        async def second(*_: object) -> None:
            log.append("second")

        writer.listen(first)
        writer.listen(second)
        puts = tuple(CLIENT_METRICS_CONFIGS.put(f"subscription {n}", {"match": "x"}) for n in range(count))
        await store.commit({}, puts)
        await writer.wait_for_revision(store.revision)
        await turns(1)
        assert " ".join(log) == order
