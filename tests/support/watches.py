"""Watches of a metadata store."""

from collections.abc import Callable

from barnabas.metadata.store import Commit, Store


async def follow(store: Store, on_commit: Callable[[Commit], object]) -> None:
    """Call a function for each commit, until the task is cancelled."""
    async for commit in store.watch(0):
        on_commit(commit)
