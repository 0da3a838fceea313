"""Run a coroutine to its first wait before a task is created for it.

Most requests never wait. Python 3.12's eager tasks do the same, but still create the task.
"""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")


def start(awaitable: Awaitable[T]) -> "T | asyncio.Task[T]":
    """Run `awaitable` until it waits or ends; return its result, or a task that runs the rest.

    :raises Exception: What `awaitable` raises before it waits.
    """
    steps = cast("Generator[Any, None, T]", awaitable.__await__())
    try:
        waits_for = next(steps)
    except StopIteration as end:
        return cast("T", end.value)
    return asyncio.get_running_loop().create_task(_run(_Started(steps, waits_for)))


async def _run(started: "_Started[T]") -> T:
    return await started


class _Started(Awaitable[T]):
    """A coroutine that has run to its first wait."""

    def __init__(self, steps: Generator[Any, None, T], waits_for: Any) -> None:
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, None, T]:
        # An error refers to this frame with its traceback, so this frame must not refer to it, nor to its future.
        waits_for, self._waits_for = self._waits_for, None
        while True:
            try:
                yield waits_for
            except BaseException as error:  # the coroutine may catch it and continue
                thrown, waits_for = error, None
            else:
                return (yield from self._steps)
            try:
                waits_for = self._steps.throw(thrown)
            except StopIteration as end:
                return cast("T", end.value)
            finally:
                del thrown
