import asyncio

import pytest

from barnabas.base import eager
from support.loop import on_loop


async def immediate() -> str:
    return "result"


@on_loop
async def test_a_coroutine_that_does_not_wait_returns_without_a_task() -> None:
    assert eager.start(immediate()) == "result"
    assert len(asyncio.all_tasks()) == 1


@on_loop
async def test_a_coroutine_that_waits_continues_in_a_task() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    steps: list[str] = []

    async def waits() -> str:
        steps.append("started")
        return await future

    task = eager.start(waits())
    assert steps == ["started"]
    assert isinstance(task, asyncio.Task)
    future.set_result("later")
    assert await task == "later"


@on_loop
async def test_an_error_before_the_first_wait_is_raised_immediately() -> None:
    async def fails() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        eager.start(fails())


@on_loop
async def test_a_coroutine_may_catch_its_cancellation_and_wait_again() -> None:
    async def persists() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done"

    task = eager.start(persists())
    assert isinstance(task, asyncio.Task)
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done"
