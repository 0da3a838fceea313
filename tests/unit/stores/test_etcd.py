"""What brokers do when etcd is restored from a backup, or a watch is cut off, with an etcd in memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.metadata.store import NEVER, Commit, Conflict, StoreChange, WentBack
from barnabas.stores.etcd import REOPEN_PAUSE_S, SILENCE_S, EtcdStore
from support.fake_etcd import FakeEtcd, FakeGateway
from support.loop import in_virtual_time
from support.watches import follow

WENT_BACK = "etcd went back from revision 3 to 1"


def store_in(etcd: FakeEtcd) -> EtcdStore:
    return EtcdStore(FakeGateway(etcd), "p", 9000)


async def put(store: EtcdStore, key: str, value: bytes) -> int:
    return await store.commit({}, (StoreChange(key, value),), f"id-{value.decode()}")


async def next_of(commits: AsyncIterator[Commit]) -> Commit:
    return await asyncio.wait_for(anext(commits), 60)


async def backed_up(etcd: FakeEtcd, store: EtcdStore) -> Any:
    """Return a backup that has one commit of three."""
    await put(store, "a", b"1")
    backup = etcd.backup()
    await put(store, "b", b"2")
    await put(store, "c", b"3")
    return backup


def restore_shared(etcd: FakeEtcd, backup: Any) -> None:
    """Restore a backup; others write to etcd before any broker looks."""
    etcd.restore(backup)
    for number in range(9):
        etcd.put("foreign", str(number))


def restore_bumped(etcd: FakeEtcd, backup: Any) -> None:
    etcd.restore(backup, bump=1000)


RESTORATIONS = [restore_shared, restore_bumped]


@pytest.mark.parametrize("restore", RESTORATIONS)
@in_virtual_time
async def test_a_watch_ends_if_a_backup_is_restored_although_etcds_revision_is_larger(restore: Any) -> None:
    etcd = FakeEtcd()
    store = store_in(etcd)
    backup = await backed_up(etcd, store)
    commits = store.watch(0)
    assert [(await next_of(commits)).revision for _ in range(3)] == [1, 2, 3]
    restore(etcd, backup)
    with pytest.raises(WentBack, match=WENT_BACK):
        await next_of(commits)


@pytest.mark.parametrize("restore", RESTORATIONS)
@in_virtual_time
async def test_a_restored_backup_is_neither_loaded_nor_changed_by_a_broker_that_knows_more(
    restore: Any,
) -> None:
    etcd = FakeEtcd()
    store = store_in(etcd)
    restore(etcd, await backed_up(etcd, store))
    restored = etcd.backup()
    with pytest.raises(WentBack, match=WENT_BACK):
        await store.load()
    with pytest.raises(WentBack, match=WENT_BACK):
        await store.latest_revision()
    for reads in ({}, {"a": 1}, {"a": NEVER}):
        with pytest.raises(WentBack, match=WENT_BACK):
            await store.commit(reads, (StoreChange("a", b"9"),))
    assert etcd.backup() == restored


@in_virtual_time
async def test_commits_of_others_show_that_a_backup_is_older() -> None:
    etcd = FakeEtcd()
    watching, loading, other = store_in(etcd), store_in(etcd), store_in(etcd)
    commits = watching.watch(0)
    backup = await backed_up(etcd, other)
    assert [(await next_of(commits)).revision for _ in range(3)] == [1, 2, 3]
    await commits.aclose()
    await loading.load()
    restore_bumped(etcd, backup)
    for store in (watching, loading):
        with pytest.raises(WentBack, match=WENT_BACK):
            await store.latest_revision()


@in_virtual_time
async def test_a_broker_that_starts_after_the_restoration_follows_it() -> None:
    etcd = FakeEtcd()
    restore_bumped(etcd, await backed_up(etcd, store_in(etcd)))
    store = store_in(etcd)
    revision, items = await store.load()
    assert [(item.key, item.revision) for item in items] == [("a", 1)]
    commits = store.watch(revision)
    with pytest.raises(Conflict):
        await store.commit({"a": 7}, (StoreChange("a", b"9"),))
    committed = await store.commit({"a": 1}, (StoreChange("a", b"9"),))
    assert (await next_of(commits)).revision == committed
    await commits.aclose()


@in_virtual_time
async def test_a_restart_of_etcd_with_all_of_its_state_is_followed() -> None:
    etcd = FakeEtcd()
    store = store_in(etcd)
    await backed_up(etcd, store)
    commits = store.watch(3)
    following = asyncio.create_task(next_of(commits))
    await asyncio.sleep(5)
    etcd.restore(etcd.backup())
    await put(store, "d", b"4")
    assert (await following).revision == 4
    assert store.reopened_watches_count == 1
    await commits.aclose()


async def following(etcd: FakeEtcd, shown: list[int]) -> tuple[EtcdStore, asyncio.Task[None]]:
    """Return a store whose watch adds the revisions that it shows to a list."""
    store = store_in(etcd)
    await store.load()

    return store, asyncio.create_task(follow(store, lambda commit: shown.append(commit.revision)))


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@in_virtual_time
async def test_a_watch_that_does_not_show_what_is_committed_is_opened_again() -> None:
    etcd, shown = FakeEtcd(), list[int]()
    store, task = await following(etcd, shown)
    other = store_in(etcd)
    await put(other, "a", b"1")
    await asyncio.sleep(10)
    etcd.hold_watches()
    await put(other, "a", b"2")
    await asyncio.sleep(3 * SILENCE_S + REOPEN_PAUSE_S)
    assert (shown, store.reopened_watches_count) == ([1, 2], 1)
    await end(task)


@in_virtual_time
async def test_a_watch_that_has_nothing_to_show_stays_open() -> None:
    etcd, shown = FakeEtcd(), list[int]()
    store, task = await following(etcd, shown)
    await put(store, "a", b"1")
    for number in range(100):
        etcd.put("foreign", str(number))
        await asyncio.sleep(1)
    assert (shown, store.reopened_watches_count) == ([1], 0)
    await end(task)


@in_virtual_time
async def test_a_watch_that_shows_a_commit_late_stays_open_as_long_as_parts_of_it_come() -> None:
    etcd, shown = FakeEtcd(), list[int]()
    store, task = await following(etcd, shown)
    await asyncio.sleep(0.5)
    [stream] = etcd.streams
    etcd.hold_watches()
    await put(store, "a", b"1")
    for _ in range(100):
        stream.received_count += 1
        await asyncio.sleep(0.9 * SILENCE_S)
    assert store.reopened_watches_count == 0
    await asyncio.sleep(3 * SILENCE_S + REOPEN_PAUSE_S)
    assert (shown, store.reopened_watches_count) == ([1], 1)
    await end(task)
