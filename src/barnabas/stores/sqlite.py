"""The embedded metadata store: one SQLite file, written in one thread, durable at each commit.

Brokers of one machine may share it. Each commit is then kept for a while in a table, from which the other processes
read it when they are notified, or at their next poll.
"""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.file_lock import Locked
from barnabas.base.store_member import StoreMember
from barnabas.metadata.store import (
    CHANGES_MAX,
    NEVER,
    Commit,
    Conflict,
    HistoryLost,
    Item,
    Prefix,
    SessionInUse,
    StoreChange,
    StoreError,
)
from barnabas.stores.session_files import SessionFiles, SessionState
from barnabas.telemetry.logs import get_logger

ResultT = TypeVar("ResultT")

#: Number of commits that other processes can read, and after how many the older ones are removed.
HISTORY_COUNT = 10_000
HISTORY_TRIM_COUNT = 1_000

#: How often a process that shares the store sends heartbeats, looks for ended sessions, and for commits of which it was
#: not notified.
POLL_INTERVAL_S = 0.1

#: A process that wakes up this late was stopped, perhaps with all others: they get an interval for their heartbeats.
STOPPED_MS = 1_000

#: Kafka's default of broker.session.timeout.ms.
SESSION_TIMEOUT_MS = 9000

#: How long a commit waits for those of other processes.
BUSY_TIMEOUT_S = 5.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (
    revision INTEGER NOT NULL, position INTEGER NOT NULL, commit_id TEXT NOT NULL, key TEXT NOT NULL, value BLOB,
    PRIMARY KEY (revision, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (last INTEGER NOT NULL);
INSERT INTO revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM revision);
"""

_log = get_logger("barnabas.stores")


class SqliteStore:
    """Keys with revisions in one file (WAL, synchronous=FULL): committed changes survive a power failure."""

    kind = "sqlite"
    changes_max = CHANGES_MAX

    def __init__(
        self,
        path: Path,
        *,
        is_shared: bool = False,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        """:param is_shared: Other processes may have the store open; without it, they must not.
        :param session_timeout_ms: Sessions of processes that are stopped end after this time.
        """
        self._path = path
        self.is_shared = is_shared
        self._session_timeout_ms = session_timeout_ms
        self._clock = clock or SystemClock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metadata-store")
        self._heartbeat_thread = ThreadPoolExecutor(1, thread_name_prefix="metadata-store-heartbeat")
        self._watchers: list[asyncio.Queue[Commit | HistoryLost]] = []
        self._database: sqlite3.Connection | None = None
        self._published_revision = 0  #: the last commit that watchers have got; written in the thread
        self._sessions: SessionFiles | None = None
        self._socket: socket.socket | None = None  #: receives notifications, and sends them
        self._tasks: list[asyncio.Task[None]] = []

    async def members(self) -> list[StoreMember]:
        return []

    async def load(self) -> tuple[int, list[Item]]:
        """Return the store's revision and all items; creates the file if it does not exist.

        :raises StoreError: When the file is not a database, is damaged, or is locked by another process.
        """
        self._begin_sharing()
        try:
            return await self._in_thread(self._load)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot read the metadata store {self._path}: {error}") from error

    async def latest_revision(self) -> int:
        """Return the revision of the last commit; see `metadata.store.Store`."""
        try:
            return await self._in_thread(self._read_latest_revision, asyncio.get_running_loop())
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self._path}: {error}") from error

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        """Write `changes` if every key in `reads` still has that revision; see `metadata.store.Store`."""
        try:
            return await self._in_thread(self._commit, asyncio.get_running_loop(), reads, changes, commit_id)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self._path}: {error}") from error

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        """Yield every commit after `revision` in order, including those of other processes."""
        queue: asyncio.Queue[Commit | HistoryLost] = asyncio.Queue()
        self._watchers.append(queue)
        published = self._published_revision
        if not self.is_shared and revision < published:
            queue.put_nowait(HistoryLost(f"the store has no commits between {revision} and {published + 1}"))
        return self._follow(queue, revision)

    async def _follow(
        self, queue: "asyncio.Queue[Commit | HistoryLost]", revision: int
    ) -> AsyncIterator[Commit]:
        try:
            for past in await self._in_thread(self._read_history, revision):
                yield past
                revision = past.revision
            while True:
                commit = await queue.get()
                if isinstance(commit, HistoryLost):
                    raise commit
                if commit.revision > revision:
                    yield commit
        finally:
            self._watchers.remove(queue)

    async def open_session(self, key: str, value: bytes) -> int:
        """Write a key that another process removes when this one ends; see `metadata.store.Store`."""
        self._begin_sharing()
        if self._sessions is not None:
            try:
                await self._in_thread(self._sessions.acquire, key)
            except Locked as error:
                raise SessionInUse(f"the session {key} is open in another process") from error
            except OSError as error:
                raise StoreError(f"{self._path}: the session {key} cannot be opened: {error}") from error
        return await self.commit({}, (StoreChange(key, value),))

    async def close_session(self, key: str) -> None:
        """Remove the key of a session that this process has opened."""
        await self.commit({}, (StoreChange(key, None),))
        if self._sessions is not None:
            await self._in_thread(self._sessions.release, key)

    async def close(self) -> None:
        """Close the files; no commit is lost without it. Open sessions end as if the process had ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
        await self._in_thread(self._heartbeat_thread.shutdown)
        await self._in_thread(self._close)
        self._thread.shutdown()

    def _begin_sharing(self) -> None:
        """Receive notifications of the other processes, once."""
        if not self.is_shared or self._socket is not None:
            return
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))
        directory = self._path.with_suffix(".sessions")
        self._sessions = SessionFiles(
            directory, self._clock.monotonic_ns, self._socket.getsockname()[1], self._session_timeout_ms
        )
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, self._receive_notifications, loop)
        self._tasks = [
            loop.create_task(self._send_heartbeats(self._sessions), name="metadata-store-heartbeat"),
            loop.create_task(self._poll(), name="metadata-store-poll"),
        ]

    def _receive_notifications(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._socket is not None
        try:
            while True:
                self._socket.recv(1)
        except BlockingIOError:
            pass
        self._thread.submit(self._publish_history, loop)

    async def _send_heartbeats(self, sessions: SessionFiles) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                await loop.run_in_executor(self._heartbeat_thread, sessions.heartbeat)
            except OSError as error:
                _log.warning("cannot write the heartbeat of a session", path=str(self._path), why=str(error))

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            since_ms = self._clock.monotonic_ms()
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                await self._in_thread(self._poll_once, loop, since_ms)
            except (sqlite3.Error, OSError) as error:
                _log.warning("cannot read the metadata store", path=str(self._path), why=str(error))

    async def _in_thread(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    # All methods below run in the thread.

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            database = sqlite3.connect(
                self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            database.executescript(_SCHEMA)
            if not self.is_shared:
                database.execute("DELETE FROM history")  # the commits that follow are not in it
            self._published_revision = _last_revision(database)
            self._database = database
        return self._database

    def _load(self) -> tuple[int, list[Item]]:
        database = self._open()
        database.execute("BEGIN")  # one snapshot for both queries
        try:
            rows = database.execute("SELECT key, value, revision FROM items ORDER BY key").fetchall()
            return _last_revision(database), [Item(*row) for row in rows]
        finally:
            database.execute("COMMIT")

    def _read_latest_revision(self, loop: asyncio.AbstractEventLoop) -> int:
        revision = _last_revision(self._open())
        if revision > self._published_revision:
            self._publish_history(loop)
        return revision

    def _commit(
        self,
        loop: asyncio.AbstractEventLoop,
        reads: Mapping[str, int],
        changes: tuple[StoreChange, ...],
        commit_id: str,
    ) -> int:
        database = self._open()
        database.execute("BEGIN IMMEDIATE")
        try:
            revision, changes = _write(database, reads, changes, commit_id, keeps_history=self.is_shared)
            database.execute("COMMIT")
        except BaseException as error:
            if database.in_transaction:  # SQLite rolls back by itself after some disk errors
                database.execute("ROLLBACK")
            if isinstance(error, Conflict):
                self._publish_history(loop)
            raise
        # Publish from here, so that watchers get the commit even if the caller was cancelled meanwhile.
        if revision == self._published_revision + 1:
            self._publish(loop, [Commit(revision, changes, commit_id)])
        else:
            self._publish_history(loop)
        self._notify()
        return revision

    def _publish_history(self, loop: asyncio.AbstractEventLoop) -> None:
        """Publish the commits of other processes."""
        try:
            commits = self._read_history(self._published_revision)
        except HistoryLost as lost:
            self._published_revision = _last_revision(self._open())
            loop.call_soon_threadsafe(self._put, [lost])
        else:
            self._publish(loop, commits)

    def _publish(self, loop: asyncio.AbstractEventLoop, commits: list[Commit]) -> None:
        if commits:
            self._published_revision = commits[-1].revision
            loop.call_soon_threadsafe(self._put, commits)

    def _put(self, commits: "list[Commit] | list[HistoryLost]") -> None:
        for watcher in self._watchers:
            for commit in commits:
                watcher.put_nowait(commit)

    def _read_history(self, revision: int) -> list[Commit]:
        """Return the commits after a revision.

        :raises HistoryLost: If the next one has been removed.
        """
        database = self._open()
        rows = database.execute(
            "SELECT revision, commit_id, key, value FROM history WHERE revision > ? ORDER BY revision, position",
            (revision,),
        ).fetchall()
        commits: list[tuple[int, str, list[StoreChange]]] = []
        for row_revision, commit_id, key, value in rows:
            if not commits or commits[-1][0] != row_revision:
                commits.append((row_revision, commit_id, []))
            commits[-1][2].append(StoreChange(key, value))
        if commits and commits[0][0] != revision + 1:
            raise HistoryLost(f"the store has no commits between {revision} and {commits[0][0]}")
        return [Commit(each, tuple(changes), commit_id) for each, commit_id, changes in commits]

    def _notify(self) -> None:
        """Wake the other processes up."""
        if self._sessions is None or self._socket is None:
            return
        # If the files cannot be read now, the commit is made all the same, and the other processes poll.
        with suppress(OSError):
            for port in self._sessions.ports():
                with suppress(OSError):  # its buffer is full, or its process has ended: it polls
                    self._socket.sendto(b"\0", ("127.0.0.1", port))

    def _poll_once(self, loop: asyncio.AbstractEventLoop, since_ms: int) -> None:
        """:param since_ms: The monotonic time at which the pause before this poll began."""
        assert self._sessions is not None
        self._publish_history(loop)
        for key in self._sessions.others():
            self._end_session(loop, key, since_ms)

    def _end_session(self, loop: asyncio.AbstractEventLoop, key: str, since_ms: int) -> None:
        """Remove the key of a session whose process has ended or is stopped."""
        assert self._sessions is not None
        # The revision is read first: a process that opens the session again changes it.
        revision = _revision_of(self._open(), key)
        if revision == NEVER or (state := self._sessions.state(key)) is SessionState.LIVE:
            return
        if state is SessionState.SILENT and self._clock.monotonic_ms() - since_ms > STOPPED_MS:
            return  # this process stood still, at the latest when it read the state, and others may have, too
        try:
            self._commit(loop, {key: revision}, (StoreChange(key, None),), "")
        except Conflict:
            return
        _log.warning("a session of the metadata store has ended", session=key, state=state.value)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._sessions is not None:
            self._sessions.release_all()
        if self._socket is not None:
            self._socket.close()


def _last_revision(database: sqlite3.Connection) -> int:
    (revision,) = database.execute("SELECT last FROM revision").fetchone()
    return int(revision)


def _revision_of(database: sqlite3.Connection, key: str) -> int:
    row = database.execute("SELECT revision FROM items WHERE key = ?", (key,)).fetchone()
    return int(row[0]) if row else NEVER


def _keys_below(database: sqlite3.Connection, prefix: Prefix, after_revision: int = NEVER) -> list[str]:
    """Return the keys with a prefix that were written after a revision."""
    query = "SELECT key FROM items WHERE key >= ? AND key < ? AND revision > ?"
    return [key for (key,) in database.execute(query, (prefix, prefix.end, after_revision))]


def _has_changed(database: sqlite3.Connection, key: str, read_revision: int) -> bool:
    if isinstance(key, Prefix):
        return bool(_keys_below(database, key, read_revision))
    return _revision_of(database, key) != read_revision


def _single_changes(database: sqlite3.Connection, changes: tuple[StoreChange, ...]) -> Iterator[StoreChange]:
    for change in changes:
        if isinstance(change.key, Prefix):
            yield from (StoreChange(key, None) for key in _keys_below(database, change.key))
        else:
            yield change


def _write(
    database: sqlite3.Connection,
    reads: Mapping[str, int],
    changes: tuple[StoreChange, ...],
    commit_id: str,
    *,
    keeps_history: bool,
) -> tuple[int, tuple[StoreChange, ...]]:
    """Return the revision of the commit, and its changes of single keys."""
    last = _last_revision(database)
    for key, read_revision in reads.items():
        if _has_changed(database, key, read_revision):
            raise Conflict(last)
    revision = last + 1
    changes = tuple(_single_changes(database, changes))
    removed = [(change.key,) for change in changes if change.value is None]
    written = [(change.key, change.value, revision) for change in changes if change.value is not None]
    if removed:
        database.executemany("DELETE FROM items WHERE key = ?", removed)
    database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", written)
    if keeps_history:
        past = [(revision, at, commit_id, change.key, change.value) for at, change in enumerate(changes)]
        database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?)", past)
        if revision % HISTORY_TRIM_COUNT == 0:
            database.execute("DELETE FROM history WHERE revision <= ?", (revision - HISTORY_COUNT,))
    database.execute("UPDATE revision SET last = ?", (revision,))
    return revision, changes
