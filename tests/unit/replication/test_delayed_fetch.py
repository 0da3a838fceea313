import asyncio

import pytest

from barnabas.replication.delayed_fetch import DelayedFetch
from support.loop import in_virtual_time, turns


class Source:
    """Records waiting fetches."""

    def __init__(self) -> None:
        self.waiting: list[DelayedFetch] = []

    def add_delayed_fetch(self, waiting: DelayedFetch) -> None:
        self.waiting.append(waiting)

    def remove_delayed_fetch(self, waiting: DelayedFetch) -> None:
        self.waiting.remove(waiting)


@in_virtual_time
async def test_a_fetch_waits_at_most_its_maximum() -> None:
    started = asyncio.get_running_loop().time()
    await DelayedFetch(1).wait([Source()], 500)
    assert asyncio.get_running_loop().time() - started == pytest.approx(0.5)


@in_virtual_time
async def test_a_fetch_completes_when_its_sources_together_have_enough_bytes() -> None:
    one, two = Source(), Source()
    waiting = DelayedFetch(100)
    task = asyncio.create_task(waiting.wait([one, two], 1_000_000))
    await turns()
    assert one.waiting == two.waiting == [waiting]
    for source, size_bytes, done in ((one, 60, False), (two, 39, False), (two, 1, True)):
        source.waiting[0].readable(size_bytes)
        await turns()
        assert task.done() is done
    assert one.waiting == two.waiting == []
    assert asyncio.get_running_loop().time() == 0


@in_virtual_time
async def test_completing_a_fetch_twice_is_harmless() -> None:
    waiting = DelayedFetch(1)
    waiting.complete()
    waiting.readable(5)
    await waiting.wait([], 1000)


@in_virtual_time
async def test_a_cancelled_fetch_leaks_nothing() -> None:
    source = Source()
    task = asyncio.create_task(DelayedFetch(1).wait([source], 1000))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.waiting == []


@in_virtual_time
async def test_sources_may_be_added_one_by_one() -> None:
    source = Source()
    await DelayedFetch(1).wait((each for each in [source]), 10)
    assert source.waiting == []
