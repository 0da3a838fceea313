import asyncio

import pytest

from barnabas.metadata.latest_revision import LatestRevision
from barnabas.metadata.store import StoreChange, StoreError
from support.loop import on_loop, turns
from support.memory_store import MemoryStore


class HeldStore(MemoryStore):
    """Each read has the revision of its beginning, and waits for `finish`."""

    def __init__(self) -> None:
        super().__init__()
        self.reading: list[asyncio.Future[None]] = []

    async def latest_revision(self) -> int:
        revision = self.revision
        self.reading.append(asyncio.get_running_loop().create_future())
        await self.reading[-1]
        return revision

    def change(self) -> None:
        self.write({}, (StoreChange("a", b""),))


async def in_progress(latest: LatestRevision) -> "asyncio.Task[int]":
    request = asyncio.create_task(latest.read())
    await turns(3)
    return request


@on_loop
async def test_requests_that_arrive_during_a_read_share_the_next_one() -> None:
    store = HeldStore()
    latest = LatestRevision(store)
    first = await in_progress(latest)
    store.change()
    others = [await in_progress(latest) for _ in range(3)]
    assert len(store.reading) == 1
    store.reading[0].set_result(None)
    assert await first == 0
    await turns(3)
    assert len(store.reading) == 2
    store.reading[1].set_result(None)
    assert await asyncio.gather(*others) == [1, 1, 1]
    assert latest.reads_count == 2


@on_loop
async def test_the_next_read_follows_one_that_has_failed() -> None:
    store = HeldStore()
    latest = LatestRevision(store)
    first, second = await in_progress(latest), await in_progress(latest)
    store.reading[0].set_exception(StoreError("no member answers"))
    with pytest.raises(StoreError, match="no member answers"):
        await first
    await turns(3)
    store.reading[1].set_result(None)
    assert await second == 0


@on_loop
async def test_a_cancelled_request_does_not_end_the_read_of_the_others() -> None:
    store = HeldStore()
    latest = LatestRevision(store)
    first = await in_progress(latest)
    second, third = await in_progress(latest), await in_progress(latest)
    for cancelled in (first, second):
        cancelled.cancel()
    store.reading[0].set_result(None)
    await turns(3)
    store.reading[1].set_result(None)
    assert await third == 0


@on_loop
async def test_stopping_ends_the_reads() -> None:
    store = HeldStore()
    latest = LatestRevision(store)
    requests = [await in_progress(latest) for _ in range(2)]
    await latest.stop()
    assert all(
        isinstance(each, asyncio.CancelledError)
        for each in await asyncio.gather(*requests, return_exceptions=True)
    )
