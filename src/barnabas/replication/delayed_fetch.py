"""Fetches that wait for bytes: woken by what becomes readable, or by their time running out."""

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Growing(Protocol):
    """Something that tells waiting fetches when it has more to read."""

    def add_waiting_fetch(self, waiting: "DelayedFetch") -> None:
        """Tell `waiting` of growth from now on."""
        ...

    def remove_waiting_fetch(self, waiting: "DelayedFetch") -> None:
        """Stop telling it."""
        ...


class DelayedFetch:
    """One long poll: done when `missing_bytes` more can be read, or when something must be looked at."""

    def __init__(self, missing_bytes: int, *, committed: bool = False) -> None:
        #: Only what lies before the last stable offset counts.
        self.committed = committed
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def readable(self, size_bytes: int) -> None:
        """Count `size_bytes` that have become readable."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.complete()

    def complete(self) -> None:
        """Stop waiting."""
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, sources: Iterable[Growing], max_wait_ms: int) -> None:
        """Wait for enough growth of `sources`, `max_wait_ms` at most."""
        sources = tuple(sources)
        for source in sources:
            source.add_waiting_fetch(self)
        try:
            await self.wait_registered(max_wait_ms)
        finally:
            for source in sources:
                source.remove_waiting_fetch(self)

    async def wait_registered(self, max_wait_ms: int) -> None:
        """Wait for enough growth of what is registered, that before included, `max_wait_ms` at most."""
        timer = asyncio.get_running_loop().call_later(max_wait_ms / 1000, self.complete)
        try:
            await self._future
        finally:
            timer.cancel()
