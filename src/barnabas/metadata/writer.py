"""The one path by which cluster state changes: decide, commit by compare-and-set, await its return."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import Image
from barnabas.metadata.store import Change, Commit, Conflict, Store

ResponseT = TypeVar("ResponseT")

#: Called after each replay with the image before, the image after and the changes that lie between.
Listener = Callable[[Image, Image, tuple[Change, ...]], None]


class MetadataWriter:
    """Follows the store's watch and holds this node's image.

    Listeners are told of each new image before anybody who waits for its revision goes on: an answered
    CreateTopics finds its partitions open.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: list[Listener] = []
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._following: asyncio.Task[None] | None = None
        self.image = Image()
        self.conflicts_count = 0
        self.commits_count = 0

    def listen(self, listener: Listener) -> None:
        """Call `listener` with (before, after, changes) on every image that is replayed from now on."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Load the store and follow it from there."""
        revision, items = await self._store.load()
        commits = self._store.watch(revision)
        self.image = Image.load(revision, items)
        self._following = asyncio.create_task(self._follow(commits), name="metadata-watch")

    async def stop(self) -> None:
        """Stop following; the image stays as it is."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None

    async def write(self, decide: Callable[[Image], Decision[ResponseT]]) -> ResponseT:
        """Commit what `decide` decides, deciding again on a newer image after each conflict.

        Returns when this node's own image has reached the commit.
        """
        while True:
            decision = decide(self.image)
            if not decision.changes:
                return decision.response
            try:
                revision = await self._store.commit(decision.reads, decision.changes)
            except Conflict as conflict:
                self.conflicts_count += 1
                await self.reached(conflict.revision)
                continue
            self.commits_count += 1
            await self.reached(revision)
            return decision.response

    async def reached(self, revision: int) -> None:
        """Wait until this node's image is at `revision` or later."""
        if self.image.revision < revision:
            future = asyncio.get_running_loop().create_future()
            self._waiters.append((revision, future))
            await future

    def statistics(self) -> dict[str, int]:
        """Where the image is, and how writing goes."""
        return {
            "revision": self.image.revision,
            "commits_count": self.commits_count,
            "conflicts_count": self.conflicts_count,
            "waiters_count": len(self._waiters),
        }

    async def _follow(self, commits: AsyncIterator[Commit]) -> None:
        async for commit in commits:
            self._advance(commit)

    def _advance(self, commit: Commit) -> None:
        before, after = self.image, self.image.replay(commit)
        self.image = after
        for listener in self._listeners:
            listener(before, after, commit.changes)
        waiting = self._waiters
        self._waiters = [waiter for waiter in waiting if waiter[0] > after.revision]
        for revision, future in waiting:
            if revision <= after.revision and not future.done():
                future.set_result(None)
