"""A store in memory that fulfils the contract of `barnabas.metadata.store.Store`."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

from barnabas.base.store_member import StoreMember
from barnabas.metadata.store import (
    CHANGES_MAX,
    NEVER,
    Commit,
    CommitTooLarge,
    Conflict,
    HistoryLost,
    Item,
    Prefix,
    StoreChange,
    StoreError,
)
from support.loop import turns


def single_changes(keys: Iterable[str], changes: Iterable[StoreChange]) -> tuple[StoreChange, ...]:
    """Return the changes with a removal of each key in place of a `Prefix`."""
    changes = tuple(changes)
    if not any(isinstance(change.key, Prefix) for change in changes):
        return changes
    keys = tuple(keys)

    def single(change: StoreChange) -> Iterable[StoreChange]:
        if not isinstance(change.key, Prefix):
            return [change]
        return [StoreChange(key, None) for key in keys if key.startswith(change.key)]

    return tuple(each for change in changes for each in single(change))


class MemoryStore:
    """Several writers may share one, as brokers share a cluster's. Commits and watches take turns of the loop."""

    kind = "memory"
    is_shared = True

    def __init__(self, latency_turns: int = 3, changes_max: int = CHANGES_MAX) -> None:
        self.changes_max = changes_max
        self.revision = 0
        self.items: dict[str, Item] = {}
        self.commits: list[Commit] = []
        self._latency_turns = latency_turns
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._watchers: list[asyncio.Queue[Commit | HistoryLost]] = []

    async def members(self) -> list[StoreMember]:
        return []

    async def load(self) -> tuple[int, list[Item]]:
        return self.revision, [self.items[key] for key in sorted(self.items)]

    async def latest_revision(self) -> int:
        await turns(self._latency_turns)
        return self.revision

    def hold(self) -> None:
        """Suspend commits until `release`."""
        self._is_open.clear()

    def release(self) -> None:
        """Resume suspended commits."""
        self._is_open.set()

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        await self._is_open.wait()
        await turns(self._latency_turns)
        return self.write(reads, changes, commit_id)

    def write(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = "") -> int:
        """Commit without the wait."""
        if max(len(reads), len(changes)) > self.changes_max:
            raise CommitTooLarge(f"{len(changes)} changes that depend on {len(reads)} keys are too many")
        if any(self._has_changed(key, seen) for key, seen in reads.items()):
            raise Conflict(self.revision)
        self.revision += 1
        changes = single_changes(self.items, changes)
        for key, value in changes:
            if value is None:
                self.items.pop(key, None)
            else:
                self.items[key] = Item(key, value, self.revision)
        commit = Commit(self.revision, changes, commit_id)
        self.commits.append(commit)
        for watcher in self._watchers:
            watcher.put_nowait(commit)
        return self.revision

    def _has_changed(self, key: str, seen: int) -> bool:
        if isinstance(key, Prefix):
            return any(item.revision > seen for item in self.items.values() if item.key.startswith(key))
        found = self.items.get(key)
        return (found.revision if found else NEVER) != seen

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        queue: asyncio.Queue[Commit | HistoryLost] = asyncio.Queue()
        self._watchers.append(queue)
        return self._follow(queue, revision)

    def lose_history(self) -> None:
        """Let all watches end without the commits that they have not yielded yet."""
        for watcher in self._watchers:
            while not watcher.empty():
                watcher.get_nowait()
            watcher.put_nowait(HistoryLost("compacted"))

    async def _follow(
        self, queue: asyncio.Queue[Commit | HistoryLost], revision: int
    ) -> AsyncIterator[Commit]:
        try:
            while True:
                commit = await queue.get()
                await turns(self._latency_turns)
                if isinstance(commit, HistoryLost):
                    raise commit
                if commit.revision > revision:
                    yield commit
        finally:
            self._watchers.remove(queue)

    async def open_session(self, key: str, value: bytes) -> int:
        return await self.commit({}, (StoreChange(key, value),))

    async def close_session(self, key: str) -> None:
        await self.commit({}, (StoreChange(key, None),))

    def end_session(self, key: str) -> None:
        """Remove the key of a session, as if its process had ended."""
        if key in self.items:
            self.write({}, (StoreChange(key, None),))

    async def close(self) -> None:
        pass


class UnreliableStore(MemoryStore):
    """Refuses commits while it is not available."""

    def __init__(self) -> None:
        super().__init__()
        self.is_available = True
        self.refused = asyncio.Event()  #: set after a commit was refused

    async def latest_revision(self) -> int:
        if not self.is_available:
            raise StoreError("the disk is full")
        return await super().latest_revision()

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        if not self.is_available:
            self.refused.set()
            raise StoreError("the disk is full")
        return await super().commit(reads, changes, commit_id)
