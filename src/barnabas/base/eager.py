"""Run a coroutine to its first wait before a task is created for it.

Most requests never wait. Python 3.12's eager tasks do the same, but still create the task.
"""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")


def start(awaitable: Awaitable[T], *, needs_task: bool = True) -> "T | asyncio.Future[T]":
    """Run `awaitable` until it waits or ends; return its result, or a task that runs the rest.

    :param needs_task: If false, return a future instead of a task: it costs less. `awaitable` must then wait only for
        futures, and use nothing that needs the current task, such as `asyncio.timeout`.
    :raises Exception: What `awaitable` raises before it waits.
    """
    steps = cast("Generator[Any, None, T]", awaitable.__await__())
    try:
        waits_for = next(steps)
    except StopIteration as end:
        return cast("T", end.value)
    if not needs_task:
        return _Continuation(steps, waits_for)
    return asyncio.get_running_loop().create_task(_run(_Started(steps, waits_for)))


class _Continuation(asyncio.Future[T]):
    """The rest of a coroutine that has run to its first wait, without a task."""

    def __init__(self, steps: Generator[Any, None, T], waits_for: "asyncio.Future[Any]") -> None:
        super().__init__()
        self._steps = steps
        self._is_cancelled = False
        self._wait(waits_for)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel what the coroutine waits for, now or next."""
        self._is_cancelled = not self.done() and not self._waits_for.cancel(msg)
        return not self.done()

    def _wait(self, waits_for: "asyncio.Future[Any]") -> None:
        self._waits_for = waits_for
        waits_for.add_done_callback(self._continue)
        if self._is_cancelled:
            self.cancel()

    def _continue(self, waited_for: "asyncio.Future[Any]") -> None:
        try:
            waits_for = self._steps.send(None)
        except StopIteration as end:
            self.set_result(end.value)
        except asyncio.CancelledError as error:
            super().cancel(*error.args)
        except Exception as error:
            self.set_exception(error)
        else:
            self._wait(waits_for)
        finally:
            # An error refers to this frame with its traceback, so this frame must not refer to futures that keep it.
            del self, waited_for


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
