import asyncio
import weakref
from typing import cast

import pytest

from barnabas.base import eager
from barnabas.base.collector import paused_collector
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


def soon(result: str | Exception) -> "asyncio.Future[str]":
    """Return a future that gets its result, or its error, in the next turn."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()
    loop.call_soon(future.set_exception if isinstance(result, Exception) else future.set_result, result)
    return future


@on_loop
async def test_a_coroutine_may_catch_any_number_of_errors() -> None:
    caught: list[ValueError] = []

    async def persists() -> str:
        for number in range(2_000):
            try:
                await soon(ValueError(number))
            except ValueError as error:
                caught.append(error)
        return await soon("done")

    assert await cast("asyncio.Task[str]", eager.start(persists())) == "done"
    assert [error.args for error in caught] == [(number,) for number in range(2_000)]
    assert all(error.__context__ is None for error in caught)


@on_loop
async def test_an_error_is_freed_without_the_garbage_collector() -> None:
    class WrongError(Exception):
        pass

    async def fails() -> str:
        return await soon(WrongError())

    with paused_collector():
        task = cast("asyncio.Task[str]", eager.start(fails()))
        await asyncio.wait([task])
        error = weakref.ref(cast("WrongError", task.exception()))
        del task
        assert error() is None
