import asyncio
import weakref
from collections.abc import Coroutine
from typing import Any, cast

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


# Without a task


def continued(coroutine: Coroutine[Any, Any, str]) -> "asyncio.Future[str]":
    """Run a coroutine to its first wait, and the rest without a task."""
    continuation = eager.start(coroutine, needs_task=False)
    assert isinstance(continuation, asyncio.Future)
    return continuation


@on_loop
async def test_a_coroutine_that_waits_only_for_futures_needs_no_task() -> None:
    async def waits() -> str:
        caught = ""
        try:
            await soon(ValueError("one"))
        except ValueError as error:
            caught = str(error)
        return caught + await soon(", two")

    continuation = continued(waits())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await continuation == "one, two"


@on_loop
async def test_what_a_coroutine_without_a_task_waits_for_is_cancelled_with_it() -> None:
    waits_for: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def waits() -> str:
        return await waits_for

    continuation = continued(waits())
    assert continuation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await continuation
    assert waits_for.cancelled()
    assert continuation.cancelled()
    assert not continuation.cancel()


@on_loop
async def test_a_coroutine_without_a_task_is_cancelled_in_its_next_wait_if_the_present_one_has_ended() -> (
    None
):
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))

    async def waits() -> str:
        return await first + await second

    continuation = continued(waits())
    first.set_result("one")
    assert continuation.cancel()
    await asyncio.wait([continuation])
    assert continuation.cancelled()
    assert second.cancelled()


@pytest.mark.parametrize("needs_task", [True, False])
def test_an_error_is_freed_without_the_garbage_collector(needs_task: bool) -> None:
    class WrongError(Exception):
        pass

    async def fails() -> str:
        return await soon(WrongError())

    @on_loop
    async def scenario() -> None:
        rest = cast("asyncio.Future[str]", eager.start(fails(), needs_task=needs_task))
        await asyncio.wait([rest])
        error = weakref.ref(cast("WrongError", rest.exception()))
        del rest
        assert error() is None

    with paused_collector():
        scenario()
