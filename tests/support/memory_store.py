"""A store in memory that fulfils the contract of `barnabas.metadata.store.Store`."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from barnabas.metadata.store import NEVER, Commit, Conflict, Item, StoreChange
from support.loop import turns


class MemoryStore:
    """Several writers may share one, as brokers share a cluster's. Commits and watches take turns of the loop."""

    def __init__(self, latency_turns: int = 3) -> None:
        self.revision = 0
        self.items: dict[str, Item] = {}
        self.commits: list[Commit] = []
        self._latency_turns = latency_turns
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._watchers: list[asyncio.Queue[Commit]] = []

    async def load(self) -> tuple[int, list[Item]]:
        return self.revision, [self.items[key] for key in sorted(self.items)]

    def hold(self) -> None:
        """Suspend commits until `release`."""
        self._is_open.clear()

    def release(self) -> None:
        """Resume suspended commits."""
        self._is_open.set()

    async def commit(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...]) -> int:
        await self._is_open.wait()
        await turns(self._latency_turns)
        return self.write(reads, changes)

    def write(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...]) -> int:
        """Commit without the wait."""
        for key, seen in reads.items():
            found = self.items.get(key)
            if (found.revision if found else NEVER) != seen:
                raise Conflict(self.revision)
        self.revision += 1
        for key, value in changes:
            if value is None:
                self.items.pop(key, None)
            else:
                self.items[key] = Item(key, value, self.revision)
        commit = Commit(self.revision, changes)
        self.commits.append(commit)
        for watcher in self._watchers:
            watcher.put_nowait(commit)
        return self.revision

    def watch(self, revision: int) -> AsyncIterator[Commit]:
        queue: asyncio.Queue[Commit] = asyncio.Queue()
        self._watchers.append(queue)
        return self._follow(queue, revision)

    async def _follow(self, queue: asyncio.Queue[Commit], revision: int) -> AsyncIterator[Commit]:
        try:
            while True:
                commit = await queue.get()
                await turns(self._latency_turns)
                if commit.revision > revision:
                    yield commit
        finally:
            self._watchers.remove(queue)

    async def close(self) -> None:
        pass
