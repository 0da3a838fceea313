"""A broker joins the cluster, joins again when its session is lost, and leaves."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from threading import current_thread, main_thread
from typing import Any

import pytest

from barnabas.base.ids import TopicIdPartition
from barnabas.base.worker import Worker
from barnabas.metadata.broker_lifecycle import decide_elections, decide_join, joining_partitions
from barnabas.metadata.brokers import BROKERS, BrokerRegistration, decide_register
from barnabas.metadata.store import OutcomeUnknown, SessionInUse, StoreChange, StoreError
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topics import PARTITION_STATES
from barnabas.metadata.writer import MetadataWriter
from barnabas.server import broker_lifecycle as module
from barnabas.server.broker_lifecycle import BrokerLifecycle
from support.images import RULES, broker, manually_assigned
from support.loop import in_virtual_time, on_loop, turns
from support.memory_store import MemoryStore


class FailingStore(MemoryStore):
    """Fails to open sessions with these errors, in order."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    async def open_session(self, key: str, value: bytes) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return await super().open_session(key, value)


class FencingStore(MemoryStore):
    """Notes whether broker 1 is fenced before each change of partitions' states."""

    def __init__(self, changes_max: int = 1000) -> None:
        super().__init__(changes_max=changes_max)
        self.fenced: list[bool] = []

    def write(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = "") -> int:
        is_fenced = (item := self.items.get(BROKERS.key("1"))) is not None and BROKERS.decode(
            item.value
        ).fenced
        revision = super().write(reads, changes, commit_id)
        if any(change.key.startswith(PARTITION_STATES.key("")) for change in changes):
            self.fenced.append(is_fenced)
        return revision


@asynccontextmanager
async def member(
    store: MemoryStore, broker_id: int = 1, worker: Worker | None = None
) -> AsyncIterator[tuple[BrokerLifecycle, MetadataWriter, list[BrokerRegistration]]]:
    metadata = MetadataWriter(store, worker=worker)
    await metadata.start()
    joined: list[BrokerRegistration] = []
    lifecycle = BrokerLifecycle(broker_id, store, metadata, lambda: broker(broker_id), joined.append)
    try:
        yield lifecycle, metadata, joined
    finally:
        await lifecycle.abandon()
        await metadata.stop()


@in_virtual_time
async def test_a_start_opens_a_session_and_registers_with_a_new_epoch() -> None:
    store = MemoryStore()
    async with member(store) as (lifecycle, metadata, joined):
        await lifecycle.start(is_clean=True, lost=())
        assert "1" in metadata.image.sessions
        assert metadata.image.brokers["1"] == joined[0]
        assert lifecycle.epoch == joined[0].epoch > 0
    async with member(store) as (again, _, _):
        await again.start(is_clean=True, lost=())
        assert again.epoch > lifecycle.epoch


@in_virtual_time
async def test_a_changed_registration_keeps_its_epoch() -> None:
    async with member(MemoryStore()) as (lifecycle, metadata, _):
        await lifecycle.start(is_clean=True, lost=())
        await lifecycle.update()
        assert metadata.image.brokers["1"].epoch == lifecycle.epoch


@in_virtual_time
async def test_a_changed_registration_keeps_what_the_controller_has_written() -> None:
    async with member(MemoryStore()) as (lifecycle, metadata, _):
        await lifecycle.start(is_clean=True, lost=())
        fenced = replace(metadata.image.brokers["1"], fenced=True, epoch=lifecycle.epoch + 5)
        await metadata.write(lambda image: decide_register(image.brokers, fenced))
        await lifecycle.update()
        assert metadata.image.brokers["1"] == fenced


@in_virtual_time
async def test_a_lost_session_is_opened_again_in_a_new_epoch() -> None:
    store = FailingStore()
    async with member(store) as (lifecycle, metadata, joined):
        await lifecycle.start(is_clean=True, lost=())
        store.errors = [StoreError("down"), OutcomeUnknown("no answer")]
        store.end_session("sessions/1")
        while len(joined) == 1:
            await turns(10)
            await asyncio.sleep(1)
        assert "1" in metadata.image.sessions
        assert joined[1].epoch > joined[0].epoch
        assert lifecycle.statistics() == {"broker_epoch": joined[1].epoch, "lost_sessions_count": 1}


@in_virtual_time
async def test_a_session_that_is_lost_again_while_the_broker_joins_is_opened_again() -> None:
    store = MemoryStore()
    async with member(store) as (lifecycle, metadata, joined):
        await lifecycle.start(is_clean=True, lost=())
        store.end_session("sessions/1")
        while len(joined) == 1:
            await asyncio.sleep(0)
            if store.items.get("sessions/1") and len(joined) == 1:
                store.end_session("sessions/1")
                break
        await turns(300)
        assert "1" in metadata.image.sessions
        assert lifecycle.epoch == metadata.image.brokers["1"].epoch


@in_virtual_time
async def test_a_broker_that_is_fenced_joins_again_although_it_has_a_session() -> None:
    """The end of its session may be followed by a put of the same session that the store carries out late."""
    async with member(MemoryStore()) as (lifecycle, metadata, joined):
        await lifecycle.start(is_clean=True, lost=())
        fenced = replace(metadata.image.brokers["1"], fenced=True)
        await metadata.write(lambda image: decide_register(image.brokers, fenced))
        while len(joined) == 1:
            await asyncio.sleep(1)
        assert not metadata.image.brokers["1"].fenced
        assert metadata.image.brokers["1"].epoch == joined[1].epoch > joined[0].epoch


@in_virtual_time
async def test_a_broker_joins_again_after_any_error() -> None:
    store = FailingStore()
    async with member(store) as (lifecycle, metadata, joined):
        await lifecycle.start(is_clean=True, lost=())
        store.errors = [OSError(5, "Input/output error"), RuntimeError("unexpected")]
        store.end_session("sessions/1")
        while len(joined) == 1:
            await turns(10)
            await asyncio.sleep(1)
        assert "1" in metadata.image.sessions


@in_virtual_time
@pytest.mark.parametrize("is_shared", [True, False])
async def test_the_sessions_of_other_brokers_end_if_no_other_process_uses_the_store(is_shared: bool) -> None:
    store = MemoryStore()
    async with member(store, 2) as (killed, _, _):
        await killed.start(is_clean=True, lost=())
    store.is_shared = is_shared
    async with member(store) as (lifecycle, metadata, _):
        await lifecycle.start(is_clean=True, lost=())
        assert sorted(metadata.image.sessions) == (["1", "2"] if is_shared else ["1"])


@in_virtual_time
async def test_a_session_in_use_ends_the_start() -> None:
    async with member(FailingStore(SessionInUse("sessions/1 is open"))) as (lifecycle, metadata, _):
        with pytest.raises(SessionInUse):
            await lifecycle.start(is_clean=True, lost=())
        assert not metadata.image.brokers


@in_virtual_time
async def test_a_stop_in_order_fences_the_broker_and_ends_its_session() -> None:
    store = MemoryStore()
    async with member(store, 2) as (other, _, _), member(store) as (lifecycle, metadata, joined):
        await other.start(is_clean=True, lost=())
        await lifecycle.start(is_clean=True, lost=())
        await lifecycle.leave()
        await metadata.wait_for_revision(store.revision)
        assert metadata.image.brokers["1"].fenced
        assert "1" not in metadata.image.sessions
        await turns(100)
        assert len(joined) == 1


@in_virtual_time
async def test_a_stop_does_not_wait_for_a_store_that_does_not_answer() -> None:
    store = MemoryStore()
    async with member(store, 2) as (other, _, _), member(store) as (lifecycle, metadata, _):
        await other.start(is_clean=True, lost=())
        await lifecycle.start(is_clean=True, lost=())
        store.hold()
        await lifecycle.leave()
        assert not metadata.image.brokers["1"].fenced


@in_virtual_time
@pytest.mark.parametrize("lost", [False, True])
async def test_a_broker_that_may_lack_records_is_fenced_before_it_leaves_the_isr(lost: bool) -> None:
    """So its image has all changes of leaders that have added it in its former epoch."""
    store = FencingStore()
    async with member(store) as (first, metadata, _), member(store, 2) as (second, _, _):
        await first.start(is_clean=True, lost=())
        await second.start(is_clean=True, lost=())
        topic = manually_assigned("t", [2, 1])
        await metadata.write(
            lambda image: decide_create(image, [topic], RULES, random.Random(1), validate_only=False)
        )
        await first.abandon()
        created = metadata.image.topics["t"]
        async with member(store) as (again, _, _):
            replicas = [TopicIdPartition(created.topic_id, 0)] if lost else []
            await again.start(is_clean=lost, lost=replicas)
        await metadata.wait_for_revision(store.revision)
        assert metadata.image.partition(created, 0).isr == (2,)
        assert store.fenced == [True]


@in_virtual_time
async def test_a_broker_with_many_partitions_joins_in_commits_that_the_store_allows() -> None:
    store = FencingStore(changes_max=47)
    async with member(store) as (first, metadata, _), member(store, 2) as (second, _, _):
        await first.start(is_clean=True, lost=())
        await second.start(is_clean=True, lost=())
        topics = [manually_assigned("shared", *[[1, 2]] * 12), manually_assigned("alone", *[[1]] * 3)]
        await metadata.write(
            lambda image: decide_create(image, topics, RULES, random.Random(1), validate_only=False)
        )
        await first.abandon()
        async with member(store) as (again, _, _):
            await again.start(is_clean=False, lost=())
            assert store.fenced == [True] * len(store.fenced)  # so that no leader adds it by an earlier fetch
            await metadata.write(decide_elections)
            image = metadata.image
        shared = [image.partition(image.topics["shared"], index) for index in range(12)]
        assert {(state.leader, state.isr) for state in shared} == {(2, (2,))}
        alone = [image.partition(image.topics["alone"], index) for index in range(3)]
        assert {(state.leader, state.leader_epoch) for state in alone} == {(1, 2)}
        assert image.brokers["1"].epoch == again.epoch > first.epoch


@in_virtual_time
async def test_a_broker_with_many_partitions_hands_them_over_in_commits_that_the_store_allows() -> None:
    store = MemoryStore(changes_max=47)
    async with member(store) as (first, metadata, _), member(store, 2) as (second, _, _):
        await first.start(is_clean=True, lost=())
        await second.start(is_clean=True, lost=())
        topics = [manually_assigned(name, *[[1, 2]] * 12) for name in "abcd"]
        for topic in topics:
            decide = partial(
                decide_create, requested=[topic], rules=RULES, rng=random.Random(1), validate_only=False
            )
            await metadata.write(decide)
        await first.leave()
        await metadata.wait_for_revision(store.revision)
        image = metadata.image
        states = [image.partition(topic, index) for topic in image.topics.values() for index in range(12)]
        assert {state.leader for state in states} == {2}


@on_loop
async def test_a_broker_of_a_large_cluster_joins_without_holding_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CHECKED_AT_ONCE_MAX", 1)
    on_main_thread: list[tuple[str, bool]] = []

    def watched(decide: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            on_main_thread.append((decide.__name__, current_thread() is main_thread()))
            return decide(*arguments, **keywords)

        return call

    for decide in (joining_partitions, decide_join):
        monkeypatch.setattr(module, decide.__name__, watched(decide))
    store, worker = MemoryStore(), Worker("test")
    for topics_count, expected in ((1, True), (2, False)):
        async with member(store, worker=worker) as (lifecycle, metadata, _):
            topics = [manually_assigned(f"t{topics_count}", [1])]
            create = partial(
                decide_create, requested=topics, rules=RULES, rng=random.Random(1), validate_only=False
            )
            await metadata.write(lambda image: decide_register(image.brokers, broker(1)))
            await metadata.write(create)
            await lifecycle.start(is_clean=True, lost=())
        assert on_main_thread == [("joining_partitions", expected), ("decide_join", expected)]
        on_main_thread.clear()
    worker.close()
