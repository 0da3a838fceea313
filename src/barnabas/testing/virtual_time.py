"""An event loop and a clock that follow real time, and can be advanced."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from barnabas.base.clock import SystemClock

#: Steps of `advance`.
STEPS_COUNT_MAX = 200

#: The loop counts as idle when this many iterations in a row have found nothing to do. Clients may keep it busy, so it
#: is not awaited for longer than the larger number of iterations.
_IDLE_ITERATIONS_COUNT = 5
_ITERATIONS_COUNT_MAX = 1_000


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs in real time. `advance` moves its time forward from timer to timer, without the wait.

    A broker of uvloop cannot be advanced, because uvloop keeps its timers in C.
    """

    def __init__(self) -> None:
        self.advanced_s = 0.0
        self._running_in_threads_count = 0
        super().__init__()

    def time(self) -> float:
        return super().time() + self.advanced_s

    async def advance(self, delta_s: float) -> None:
        """Let the timers of the next `delta_s` seconds fire in order, and wait for what they begin.

        Time moves in steps, so that not every timer of a long time takes one.
        """
        end_s, step_s = self.time() + delta_s, delta_s / STEPS_COUNT_MAX
        await self._until_idle()
        while (due_s := self._next_timer_s()) is not None and due_s <= end_s:
            self.advanced_s += max(min(max(due_s, self.time() + step_s), end_s) - self.time(), 0.0)
            await self._until_idle()
        self.advanced_s += max(end_s - self.time(), 0.0)
        await self._until_idle()

    def _next_timer_s(self) -> float | None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)

    async def _until_idle(self) -> None:
        idle_count = iterations_count = 0
        while idle_count < _IDLE_ITERATIONS_COUNT:
            await asyncio.sleep(0)
            iterations_count += 1
            is_served = not self._ready or iterations_count > _ITERATIONS_COUNT_MAX  # type: ignore[attr-defined]
            idle_count = idle_count + 1 if is_served and not self._running_in_threads_count else 0

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._running_in_threads_count += 1
        future.add_done_callback(self._on_thread_done)
        return future

    def _on_thread_done(self, _: object) -> None:
        self._running_in_threads_count -= 1


class VirtualClock:
    """The clock of a `VirtualTimeLoop`."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self._system = SystemClock()

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, plus the time that was advanced."""
        return self._system.wall_ms() + int(self._loop.advanced_s * 1_000)

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary point."""
        return self.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary point."""
        return self._system.monotonic_ns() + int(self._loop.advanced_s * 1_000_000_000)
