"""The revision of a store that other brokers write, too."""

import asyncio

from barnabas.metadata.store import Store


class LatestRevision:
    """Reads the store's revision for requests, one read at a time.

    Requests that arrive during a read share the next one: the read in progress may miss what was committed before
    they arrived.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None  #: waits for the read in progress
        self.reads_count = 0

    async def read(self) -> int:
        """Return a revision that includes every commit that was made before this call.

        :raises StoreError: If the store cannot be read.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._read_next(), name="latest-revision")
            self._next.add_done_callback(_mark_retrieved)
        return await asyncio.shield(self._next)

    async def stop(self) -> None:
        """Cancel the reads; requests that wait for them are cancelled, too."""
        tasks = [task for task in (self._reading, self._next) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_next(self) -> int:
        if self._reading is not None:
            await asyncio.wait({self._reading})
        self._reading, self._next = self._next, None
        self.reads_count += 1
        return await self._store.latest_revision()


def _mark_retrieved(reading: asyncio.Task[int]) -> None:
    """Let asyncio not report an error as one that nothing has handled: all requests may have been cancelled."""
    if not reading.cancelled():
        reading.exception()
