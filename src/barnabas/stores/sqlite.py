"""The embedded metadata store: one SQLite file, written in one thread, durable at each commit."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from barnabas.metadata.store import NEVER, Commit, Conflict, Item, StoreChange, StoreError

ResultT = TypeVar("ResultT")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (last INTEGER NOT NULL);
INSERT INTO revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM revision);
"""


class SqliteStore:
    """Keys with revisions in one file (WAL, synchronous=FULL): committed changes survive a power failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metadata-store")
        self._watchers: list[asyncio.Queue[Commit]] = []
        self._database: sqlite3.Connection | None = None

    async def load(self) -> tuple[int, list[Item]]:
        """Return the store's revision and all items; creates the file if it does not exist.

        :raises StoreError: When the file is not a database, is damaged, or is locked by another process.
        """
        try:
            return await self._in_thread(self._load)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot read the metadata store {self._path}: {error}") from error

    async def commit(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...]) -> int:
        """Write `changes` if every key in `reads` still has that revision; see `metadata.store.Store`."""
        try:
            return await self._in_thread(self._commit, asyncio.get_running_loop(), reads, changes)
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot write to the metadata store: {error}") from error

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        """Yield every commit of this process from now on that is later than `revision`, in order."""
        queue: asyncio.Queue[Commit] = asyncio.Queue()
        self._watchers.append(queue)
        return self._follow(queue, revision)

    async def _follow(self, queue: asyncio.Queue[Commit], revision: int) -> AsyncIterator[Commit]:
        try:
            while True:
                commit = await queue.get()
                if commit.revision > revision:
                    yield commit
        finally:
            self._watchers.remove(queue)

    async def close(self) -> None:
        """Close the file; no commit is lost without it."""
        await self._in_thread(self._close)
        self._thread.shutdown()

    async def _in_thread(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
        return self._database

    def _load(self) -> tuple[int, list[Item]]:
        database = self._open()
        (revision,) = database.execute("SELECT last FROM revision").fetchone()
        rows = database.execute("SELECT key, value, revision FROM items ORDER BY key")
        return revision, [Item(*row) for row in rows]

    def _commit(
        self, loop: asyncio.AbstractEventLoop, reads: Mapping[str, int], changes: tuple[StoreChange, ...]
    ) -> int:
        database = self._open()
        database.execute("BEGIN IMMEDIATE")
        try:
            revision = self._write(database, reads, changes)
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # SQLite rolls back by itself after some disk errors
                database.execute("ROLLBACK")
            raise
        # Publish from here, so that watchers get the commit even if the caller was cancelled meanwhile.
        loop.call_soon_threadsafe(self._publish, Commit(revision, changes))
        return revision

    def _publish(self, commit: Commit) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(commit)

    def _write(
        self, database: sqlite3.Connection, reads: Mapping[str, int], changes: tuple[StoreChange, ...]
    ) -> int:
        (last,) = database.execute("SELECT last FROM revision").fetchone()
        for key, read_revision in reads.items():
            row = database.execute("SELECT revision FROM items WHERE key = ?", (key,)).fetchone()
            if (row[0] if row else NEVER) != read_revision:
                raise Conflict(last)
        revision = int(last) + 1
        removed = [(change.key,) for change in changes if change.value is None]
        written = [(change.key, change.value, revision) for change in changes if change.value is not None]
        database.executemany("DELETE FROM items WHERE key = ?", removed)
        database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", written)
        database.execute("UPDATE revision SET last = ?", (revision,))
        return revision

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
