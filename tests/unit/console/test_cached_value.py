"""What is kept for a while."""

import asyncio

import pytest

from barnabas.base.clock import ManualClock
from barnabas.console.cached_value import Snapshot


class Source:
    """Counts how often it is asked; fails on demand."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.clock = ManualClock()
        self.snapshot = Snapshot(self.load, self.clock, fresh_ms=10, stale_ms=100)

    async def load(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.fails:
            raise ConnectionError("gone")
        return self.asked


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_it_is_shown_as_it_is_then_renewed_behind_the_scenes_then_waited_for() -> None:
    async def run() -> None:
        source = Source()
        assert await source.snapshot.get() == 1
        source.clock.advance(10)
        assert await source.snapshot.get() == 1
        source.clock.advance(1)
        assert await source.snapshot.get() == 1
        await settled()
        assert await source.snapshot.get() == 2
        source.clock.advance(101)
        assert await source.snapshot.get() == 3

    asyncio.run(run())


def test_those_who_wait_together_ask_once() -> None:
    async def run() -> None:
        source = Source()
        assert await asyncio.gather(*(source.snapshot.get() for _ in range(5))) == [1] * 5

    asyncio.run(run())


def test_what_is_known_to_be_wrong_is_forgotten() -> None:
    async def run() -> None:
        source = Source()
        await source.snapshot.get()
        source.snapshot.clear()
        assert await source.snapshot.get() == 2

    asyncio.run(run())


def test_a_failure_meets_who_waits_and_not_who_is_shown_the_old_value() -> None:
    async def run() -> None:
        source = Source()
        await source.snapshot.get()
        source.fails = True
        source.clock.advance(50)
        assert await source.snapshot.get() == 1
        await settled()
        assert await source.snapshot.get() == 1
        source.clock.advance(100)
        with pytest.raises(ConnectionError):
            await source.snapshot.get()

    asyncio.run(run())


def test_who_waits_while_it_is_forgotten_is_answered_and_the_next_asks_anew() -> None:
    async def run() -> None:
        source = Source()
        waiting = asyncio.create_task(source.snapshot.get())
        await asyncio.sleep(0)
        source.snapshot.clear()
        assert await source.snapshot.get() == 2
        await waiting
        assert await source.snapshot.get() == 2

    asyncio.run(run())


def test_who_waits_while_it_is_closed_is_told_so() -> None:
    async def run() -> None:
        source = Source()
        waiting = asyncio.create_task(source.snapshot.get())
        await asyncio.sleep(0)
        source.snapshot.close()
        with pytest.raises(ConnectionError, match="has ended"):
            await waiting

    asyncio.run(run())
