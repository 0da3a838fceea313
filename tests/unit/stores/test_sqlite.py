import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.metadata.store import HistoryLost, Item, Store, StoreChange, StoreError
from barnabas.stores.sqlite import SqliteStore
from support.loop import on_loop
from unit.stores.store_contract import StoreContract


class TestSqliteStore(StoreContract):
    @asynccontextmanager
    async def opened(self, directory: Path) -> AsyncIterator[Store]:
        store = SqliteStore(directory / "metadata.sqlite")
        try:
            yield store
        finally:
            await store.close()


class TestSharedSqliteStore(StoreContract):
    @asynccontextmanager
    async def opened(self, directory: Path) -> AsyncIterator[Store]:
        async with opened(directory / "metadata.sqlite", is_shared=True) as store:
            yield store


@asynccontextmanager
async def opened(path: Path, *, is_shared: bool = False) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, is_shared=is_shared)
    yield store
    await store.close()


@on_loop
async def test_every_commit_is_flushed_to_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        await store.load()
        assert store._database is not None
        for pragma, expected in (("journal_mode", "wal"), ("synchronous", 2)):
            assert store._database.execute(f"PRAGMA {pragma}").fetchone() == (expected,)


@on_loop
async def test_commits_survive_without_closing_the_store(tmp_path: Path) -> None:
    left = SqliteStore(tmp_path / "s")
    await left.commit({}, (StoreChange("a", b"1"),))
    async with opened(tmp_path / "s") as store:
        assert await store.load() == (1, [Item("a", b"1", 1)])
    await left.close()


@on_loop
async def test_a_failed_commit_leaves_nothing_and_the_store_continues(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        unfit = StoreChange("b", object())  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="type 'object' is not supported"):
            await store.commit({}, (StoreChange("a", b"1"), unfit))
        assert await store.load() == (0, [])
        assert await store.commit({}, (StoreChange("a", b"1"),)) == 1


class FullDisk:
    """A database whose transactions cannot be committed."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return self._database.execute(statement, *values)


@on_loop
async def test_a_commit_that_the_disk_rejects_leaves_nothing_and_the_store_continues(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        await store.load()
        database = store._database
        assert database is not None
        store._database = FullDisk(database)  # type: ignore[assignment]
        with pytest.raises(StoreError, match="disk is full"):
            await store.commit({}, (StoreChange("a", b"1"),))
        store._database = database
        assert await store.load() == (0, [])
        assert await store.commit({}, (StoreChange("a", b"1"),)) == 1


@on_loop
async def test_a_file_that_is_not_a_store_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"not a database, and long enough to be told from one" * 50)
    async with opened(tmp_path / "s") as store:
        with pytest.raises(StoreError, match="s: file is not a database"):
            await store.load()


@on_loop
async def test_a_closed_store_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    async with opened(tmp_path / "s") as store:
        await store.load()
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


@on_loop
async def test_the_loop_is_not_blocked_by_a_flush(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        await store.load()
        writing = asyncio.create_task(store.commit({}, (StoreChange("a", b"1" * 1_000_000),)))
        turns_count = 0
        while not writing.done():
            turns_count += 1
            await asyncio.sleep(0)
        assert turns_count > 1
        assert await writing == 1


@on_loop
async def test_a_cancelled_watcher_is_removed(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        commits = store.watch(0)
        await store.commit({}, (StoreChange("a", b"1"),))
        await anext(commits)
        await commits.aclose()  # type: ignore[attr-defined]
        assert store._watchers == []


@on_loop
async def test_a_watch_that_begins_after_later_commits_ends(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as store:
        for value in (b"1", b"2"):
            await store.commit({}, (StoreChange("a", value),))
        with pytest.raises(HistoryLost, match="no commits between 1 and 3"):
            await anext(store.watch(1))
    async with opened(tmp_path / "s") as store:
        await store.load()
        with pytest.raises(HistoryLost, match="no commits between 0 and 3"):
            await anext(store.watch(0))
        in_time = store.watch(2)
        await store.commit({}, (StoreChange("a", b"3"),))
        assert (await anext(in_time)).revision == 3


@on_loop
async def test_a_shared_store_lacks_the_commits_of_a_process_that_was_alone(tmp_path: Path) -> None:
    for is_shared in (True, False, True):
        async with opened(tmp_path / "s", is_shared=is_shared) as store:
            await store.commit({}, (StoreChange("a", b"1"),))
    async with opened(tmp_path / "s", is_shared=True) as store:
        with pytest.raises(HistoryLost, match="no commits between 0 and 3"):
            await anext(store.watch(0))
        assert (await anext(store.watch(2))).revision == 3


@on_loop
async def test_only_a_shared_store_writes_its_history_to_the_file(tmp_path: Path) -> None:
    counts = []
    for is_shared in (False, True):
        async with opened(tmp_path / "s", is_shared=is_shared) as store:
            await store.load()
            await store.commit({}, (StoreChange("a", b"1"),))
        with sqlite3.connect(tmp_path / "s") as database:
            counts += database.execute("SELECT count(*) FROM history").fetchone()
    assert counts == [0, 1]
