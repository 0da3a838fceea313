"""Fetches that wait for data: completed by new readable bytes or by a timeout."""

import asyncio
from collections.abc import Iterable
from typing import Protocol


class FetchSource(Protocol):
    """A partition that informs delayed fetches about new readable bytes."""

    def add_delayed_fetch(self, fetch: "DelayedFetch") -> None:
        """Inform `fetch` about new bytes from now on."""
        ...

    def remove_delayed_fetch(self, fetch: "DelayedFetch") -> None:
        """Stop informing `fetch`."""
        ...


class DelayedFetch:
    """One long poll: completes when `missing_bytes` more can be read, or when the client must read again."""

    def __init__(self, missing_bytes: int, *, read_committed: bool = False) -> None:
        #: Whether only bytes below the last stable offset count (`read_committed`).
        self.read_committed = read_committed
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def readable(self, size_bytes: int) -> None:
        """Count `size_bytes` that became readable."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.complete()

    def complete(self) -> None:
        """Complete the fetch now."""
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, sources: Iterable[FetchSource], max_wait_ms: int) -> None:
        """Wait until `sources` have enough new bytes, at most `max_wait_ms`."""
        sources = tuple(sources)
        for source in sources:
            source.add_delayed_fetch(self)
        try:
            await self.wait_registered(max_wait_ms)
        finally:
            for source in sources:
                source.remove_delayed_fetch(self)

    async def wait_registered(self, max_wait_ms: int) -> None:
        """Wait like `wait` for sources where this fetch is already added; bytes before the call count, too."""
        timer = asyncio.get_running_loop().call_later(max_wait_ms / 1000, self.complete)
        try:
            await self._future
        finally:
            timer.cancel()
