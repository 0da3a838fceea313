"""Run asynchronous tests in virtual time that jumps to the next timer instead of sleeping."""

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the time to the next timer instead of waiting for it."""

    now_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout:
            self.now_seconds += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while callbacks are ready. Not for code that waits for threads."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_seconds


def _run(test: Callable[..., Awaitable[None]], loop_factory: Any, arguments: Any, keywords: Any) -> None:
    async def main() -> None:
        await test(*arguments, **keywords)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left behind: {left}"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test on an ordinary loop; it must leave no task behind."""

    @functools.wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        _run(test, asyncio.new_event_loop, arguments, keywords)

    return run


def in_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test in virtual time; it must leave no task behind."""

    @functools.wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        _run(test, VirtualTimeLoop, arguments, keywords)

    return run


async def turns(count: int = 10) -> None:
    """Run the loop for `count` turns."""
    for _ in range(count):
        await asyncio.sleep(0)
