import asyncio

import pytest

from barnabas.client.core.loop_thread import LoopThread


def test_the_loop_returns_results_and_raises_errors() -> None:
    async def divide(by: int) -> int:
        return 6 // by

    loop = LoopThread("test")
    assert loop.run(divide(2)) == 3
    with pytest.raises(ZeroDivisionError):
        loop.run(divide(0))
    loop.stop()


def test_a_loop_that_stops_leaves_nothing_pending() -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def begin() -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0)
        return task

    loop = LoopThread("test")
    task = loop.run(begin())
    loop.stop()
    assert task.cancelled()
    assert ended == [True]
