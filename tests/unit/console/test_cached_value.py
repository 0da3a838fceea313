"""A cached value with background refresh."""

import asyncio

import pytest

from barnabas.base.clock import ManualClock
from barnabas.console.cached_value import Snapshot


class Source:
    """Counts its loads; fails on demand."""

    def __init__(self) -> None:
        self.loads_count = 0
        self.fails = False
        self.clock = ManualClock()
        self.snapshot = Snapshot(self.load, self.clock, fresh_ms=10, stale_ms=100)

    async def load(self) -> int:
        self.loads_count += 1
        await asyncio.sleep(0)
        if self.fails:
            raise ConnectionError("gone")
        return self.loads_count


async def run_pending() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_value_is_fresh_then_stale_with_a_refresh_then_awaited() -> None:
    async def run() -> None:
        source = Source()
        assert await source.snapshot.get() == 1
        source.clock.advance(10)
        assert await source.snapshot.get() == 1
        source.clock.advance(1)
        assert await source.snapshot.get() == 1
        await run_pending()
        assert await source.snapshot.get() == 2
        source.clock.advance(101)
        assert await source.snapshot.get() == 3

    asyncio.run(run())


def test_concurrent_waiters_share_one_load() -> None:
    async def run() -> None:
        source = Source()
        assert await asyncio.gather(*(source.snapshot.get() for _ in range(5))) == [1] * 5

    asyncio.run(run())


def test_an_invalidated_value_is_loaded_again() -> None:
    async def run() -> None:
        source = Source()
        await source.snapshot.get()
        source.snapshot.clear()
        assert await source.snapshot.get() == 2

    asyncio.run(run())


def test_an_error_is_raised_to_waiters_but_not_while_the_old_value_is_served() -> None:
    async def run() -> None:
        source = Source()
        await source.snapshot.get()
        source.fails = True
        source.clock.advance(50)
        assert await source.snapshot.get() == 1
        await run_pending()
        assert await source.snapshot.get() == 1
        source.clock.advance(100)
        with pytest.raises(ConnectionError):
            await source.snapshot.get()

    asyncio.run(run())


def test_a_waiter_during_invalidation_is_answered_and_the_next_one_loads_again() -> None:
    async def run() -> None:
        source = Source()
        waiting = asyncio.create_task(source.snapshot.get())
        await asyncio.sleep(0)
        source.snapshot.clear()
        assert await source.snapshot.get() == 2
        await waiting
        assert await source.snapshot.get() == 2

    asyncio.run(run())


def test_a_waiter_gets_an_error_when_the_cache_is_closed() -> None:
    async def run() -> None:
        source = Source()
        waiting = asyncio.create_task(source.snapshot.get())
        await asyncio.sleep(0)
        source.snapshot.close()
        with pytest.raises(ConnectionError, match="has ended"):
            await waiting

    asyncio.run(run())
