import asyncio
import gc
from typing import Any

import pytest

from barnabas.base.deadlines import CLEANED_COUNT_MIN, Deadlines
from support.loop import in_virtual_time


def pending() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def ended_after_s(future: "asyncio.Future[None]") -> float:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with pytest.raises(TimeoutError):
        await future
    return round(loop.time() - began_s, 3)


@in_virtual_time
async def test_each_wait_ends_at_its_own_deadline() -> None:
    deadlines = Deadlines()
    first, second, short = pending(), pending(), pending()
    deadlines.limit(first, 1000)
    await asyncio.sleep(0.4)
    deadlines.limit(second, 1000)
    deadlines.limit(short, 100)
    assert await asyncio.gather(*map(ended_after_s, (first, second, short))) == [0.6, 1.0, 0.1]
    assert deadlines.statistics() == {"waits_count": 0, "expired_count": 3}


@in_virtual_time
async def test_waits_that_have_ended_are_left_alone() -> None:
    deadlines = Deadlines()
    done, cancelled, waiting = pending(), pending(), pending()
    for future in (done, cancelled, waiting):
        deadlines.limit(future, 1000)
    done.set_result(None)
    cancelled.cancel()
    assert await ended_after_s(waiting) == 1.0
    assert (done.result(), cancelled.cancelled()) == (None, True)
    assert deadlines.expired_count == 1


@in_virtual_time
async def test_a_timeout_that_is_over_ends_a_wait_at_once() -> None:
    future = pending()
    Deadlines().limit(future, -1)
    assert await ended_after_s(future) == 0.0


@in_virtual_time
async def test_many_waits_that_have_ended_are_not_kept_until_their_deadline() -> None:
    deadlines = Deadlines()
    slow = pending()
    deadlines.limit(slow, 30_000)
    for _ in range(10 * CLEANED_COUNT_MIN):
        future = pending()
        deadlines.limit(future, 30_000)
        future.set_result(None)
    assert deadlines.statistics()["waits_count"] <= CLEANED_COUNT_MIN + 1
    assert await ended_after_s(slow) == 30.0


@in_virtual_time
async def test_no_error_is_left_over_if_nothing_waits_any_more() -> None:
    unretrieved: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
    Deadlines().limit(pending(), 10)
    await asyncio.sleep(1)
    gc.collect()
    assert not unretrieved
