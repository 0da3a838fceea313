import asyncio

import pytest

from barnabas.base.stopwatch import Stopwatch
from support.loop import on_loop


class Hand:
    """A clock that the work itself advances."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@on_loop
async def test_the_time_of_steps_is_counted_without_waits() -> None:
    clock, gate = Hand(), asyncio.get_running_loop().create_future()

    async def work() -> str:
        clock.now_ns += 3
        word: str = await gate
        clock.now_ns += 4
        return word

    def meanwhile() -> None:
        clock.now_ns += 1000
        gate.set_result("done")

    watch = Stopwatch(work(), clock)
    asyncio.get_running_loop().call_soon(meanwhile)
    assert await watch == "done"
    assert watch.elapsed_ns == 7


@on_loop
async def test_an_exception_thrown_at_a_wait_reaches_the_work_which_may_continue() -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            await gate
        except ValueError:
            await asyncio.sleep(0)
            return "caught"
        return "missed"

    asyncio.get_running_loop().call_soon(gate.set_exception, ValueError("now"))
    assert await Stopwatch(work(), Hand()) == "caught"


@on_loop
async def test_an_error_of_the_work_is_raised_and_its_time_counted() -> None:
    clock = Hand()

    async def work() -> None:
        clock.now_ns += 5
        raise ValueError("no")

    watch = Stopwatch(work(), clock)
    with pytest.raises(ValueError, match="no"):
        await watch
    assert watch.elapsed_ns == 5


@on_loop
async def test_cancelling_reaches_the_work() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("cleaned up")

    async def watched() -> None:
        await Stopwatch(work(), Hand())

    task = asyncio.ensure_future(watched())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]
