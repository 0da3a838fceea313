"""Processes that share a SQLite store."""

import asyncio
import errno
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.store import (
    NEVER,
    Commit,
    Conflict,
    HistoryLost,
    Item,
    SessionInUse,
    StoreChange,
    StoreError,
)
from barnabas.stores import sqlite
from barnabas.stores.session_files import SessionFiles, SessionState
from barnabas.stores.sqlite import SqliteStore
from support.loop import on_loop
from support.waiting import reached
from unit.stores.store_contract import take

#: Opens a session, and commits each line of its input.
PROCESS = """
import asyncio, sys
from pathlib import Path
from barnabas.metadata.store import StoreChange
from barnabas.stores.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]), is_shared=True)
    await store.load()
    await store.open_session("sessions/2", b"two")
    print("open", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        print(await store.commit({}, (StoreChange(line, b"other"),)), flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def shared(path: Path, count: int = 1) -> AsyncIterator[list[SqliteStore]]:
    async with AsyncExitStack() as stack:
        stores = [SqliteStore(path, is_shared=True, session_timeout_ms=1000) for _ in range(count)]
        for store in stores:
            stack.push_async_callback(store.close)
            await store.load()
        yield stores


@contextmanager
def other_process(path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PROCESS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


def commit_in(process: "subprocess.Popen[str]", key: str) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{key}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


async def until_removed(store: SqliteStore, key: str) -> None:
    commits = store.watch((await store.load())[0])
    try:
        while key in {item.key for item in (await store.load())[1]}:
            await asyncio.wait_for(anext(commits), 20)
    finally:
        await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_each_watcher_sees_the_commits_of_all_stores_in_one_order(tmp_path: Path) -> None:
    async with shared(tmp_path / "s", 3) as stores:
        watches = [store.watch(0) for store in stores]
        await asyncio.gather(
            *(
                store.commit({}, (StoreChange(f"{number}-{at}", b"v"),))
                for at in range(20)
                for number, store in enumerate(stores)
            )
        )
        seen = [await take(commits, 60) for commits in watches]
        assert [commit.revision for commit in seen[0]] == list(range(1, 61))
        assert seen[0] == seen[1] == seen[2]
        for commits in watches:
            await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_the_latest_revision_includes_commits_of_others_and_wakes_the_watch(tmp_path: Path) -> None:
    async with shared(tmp_path / "s", 2) as (one, two):
        commits = one.watch(0)
        for revision in range(1, 51):
            await two.commit({}, (StoreChange("a", b"%d" % revision),))
            assert await one.latest_revision() == revision
        assert [commit.revision for commit in await take(commits, 50)] == list(range(1, 51))
        await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_a_watch_sees_commits_of_others_between_its_load_and_its_begin(tmp_path: Path) -> None:
    async with shared(tmp_path / "s", 2) as (one, two):
        revision, _ = await one.load()
        await two.commit({}, (StoreChange("a", b"1"),), "first")
        commits = one.watch(revision)
        assert await take(commits, 1) == [Commit(1, (StoreChange("a", b"1"),), "first")]
        await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_a_conflict_with_another_store_is_seen_by_the_watch(tmp_path: Path) -> None:
    async with shared(tmp_path / "s", 2) as (one, two):
        commits = one.watch(0)
        await two.commit({}, (StoreChange("a", b"1"),))
        with pytest.raises(Conflict) as raised:
            await one.commit({"a": NEVER}, (StoreChange("a", b"2"),))
        assert raised.value.revision == 1
        assert [commit.revision for commit in await take(commits, 1)] == [1]
        await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_a_watch_that_is_too_far_behind_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "HISTORY_COUNT", 10)
    monkeypatch.setattr(sqlite, "HISTORY_TRIM_COUNT", 10)
    async with shared(tmp_path / "s") as (store,):
        for at in range(30):
            await store.commit({}, (StoreChange("a", b"%d" % at),))
        late = store.watch(5)
        with pytest.raises(HistoryLost, match="no commits between 5 and 21"):
            await anext(late)
        in_time = store.watch(20)
        assert [commit.revision for commit in await take(in_time, 10)] == list(range(21, 31))
        await in_time.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_another_process_is_followed_and_its_session_ends_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with shared(path) as (store,):
        with other_process(path) as process:
            commits = store.watch(1)
            assert await asyncio.to_thread(commit_in, process, "a") == 2
            assert await take(commits, 1) == [Commit(2, (StoreChange("a", b"other"),))]
            process.kill()
            process.wait()
            assert await take(commits, 1) == [Commit(3, (StoreChange("sessions/2", None),))]
            await commits.aclose()  # type: ignore[attr-defined]


@on_loop
async def test_the_session_of_a_stopped_process_ends_after_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with shared(path) as (store,):
        with other_process(path) as process:
            process.send_signal(signal.SIGSTOP)
            await until_removed(store, "sessions/2")
            assert process.poll() is None


@on_loop
async def test_a_session_lives_while_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_writing, may_write = threading.Event(), threading.Event()
    write = sqlite._write

    def slow_write(*arguments: Any, **options: Any) -> Any:
        is_writing.set()
        may_write.wait()
        return write(*arguments, **options)

    clock = ManualClock()
    store = SqliteStore(tmp_path / "s", is_shared=True, session_timeout_ms=1000, clock=clock)
    other = SessionFiles(tmp_path / "s.sessions", clock.monotonic_ns, 1, 1000)
    await store.load()
    await store.open_session("sessions/1", b"one")
    monkeypatch.setattr(sqlite, "_write", slow_write)
    commit = asyncio.create_task(store.commit({}, (StoreChange("a", b"1"),)))
    try:
        await reached(is_writing.is_set)
        clock.advance(1001)
        await reached(lambda: other.state("sessions/1") is SessionState.LIVE)
    finally:
        may_write.set()
        await commit
        await store.close()


@on_loop
async def test_a_process_that_was_stopped_itself_does_not_end_the_sessions_of_others_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.stores.sqlite.POLL_INTERVAL_S", 3_600)  # the test polls itself
    clock = ManualClock()
    other = SessionFiles(tmp_path / "s.sessions", clock.monotonic_ns, 1, 1000)
    other.acquire("sessions/2")
    store = SqliteStore(tmp_path / "s", is_shared=True, session_timeout_ms=1000, clock=clock)
    try:
        await store.load()
        await store.commit({}, (StoreChange("sessions/2", b"two"),))
        loop = asyncio.get_running_loop()
        before_ms = clock.monotonic_ms()
        clock.advance(30_000)  # all processes stood still
        store._poll_once(loop, before_ms)
        assert [item.key for item in (await store.load())[1]] == ["sessions/2"]
        store._poll_once(loop, clock.monotonic_ms())
        assert (await store.load())[1] == []
        await store.commit({}, (StoreChange("sessions/2", b"two"),))
        other.release_all()  # its process has ended
        store._poll_once(loop, before_ms)
        assert (await store.load())[1] == []
    finally:
        other.release_all()
        await store.close()


@on_loop
async def test_a_session_that_lives_cannot_be_opened_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.stores.session_files._LOCK_TIMEOUT_S", 0.05)
    async with shared(tmp_path / "s", 2) as (one, two):
        await one.open_session("sessions/1", b"one")
        with pytest.raises(SessionInUse, match=r"sessions/1 is open in another process"):
            await two.open_session("sessions/1", b"two")
        await one.close_session("sessions/1")
        await two.open_session("sessions/1", b"two")
        assert (await one.load())[1] == [Item("sessions/1", b"two", 3)]


@on_loop
async def test_the_session_of_a_closed_store_ends(tmp_path: Path) -> None:
    async with shared(tmp_path / "s") as (store,):
        async with shared(tmp_path / "s") as (other,):
            await other.open_session("sessions/2", b"two")
        await until_removed(store, "sessions/2")


def test_session_files_show_which_process_lives(tmp_path: Path) -> None:
    clock = ManualClock()
    one = SessionFiles(tmp_path / "sessions", clock.monotonic_ns, 1111, 500)
    two = SessionFiles(tmp_path / "sessions", clock.monotonic_ns, 2222, 500)
    assert one.others() == []
    assert one.ports() == []
    two.acquire("sessions/2")
    assert one.others() == ["sessions/2"]
    assert one.ports() == [2222]
    assert one.state("sessions/2") is SessionState.LIVE
    clock.advance(501)
    assert one.state("sessions/2") is SessionState.SILENT
    two.heartbeat()
    assert one.state("sessions/2") is SessionState.LIVE
    two.release_all()
    assert one.state("sessions/2") is SessionState.ENDED


@on_loop
async def test_a_commit_succeeds_although_the_other_processes_cannot_be_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ports(_: SessionFiles) -> list[int]:
        raise OSError(errno.EMFILE, "Too many open files")

    async with shared(tmp_path / "s") as [store]:
        await store.open_session("sessions/1", b"one")
        monkeypatch.setattr(SessionFiles, "ports", ports)
        revision = await store.commit({}, (StoreChange("a", b"b"),))
        assert await store.latest_revision() == revision


@on_loop
async def test_a_session_file_that_cannot_be_written_is_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heartbeat(_: SessionFiles) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with shared(tmp_path / "s") as [store]:
        with monkeypatch.context() as patched:
            patched.setattr(SessionFiles, "heartbeat", heartbeat)
            with pytest.raises(StoreError, match="the session sessions/1 cannot be opened"):
                await store.open_session("sessions/1", b"one")
        await store.open_session("sessions/1", b"one")
