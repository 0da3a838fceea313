"""Event loops and a clock that follow real time, and can be advanced."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from barnabas.base.clock import SystemClock
from barnabas.client.core.loop_thread import LoopThread

#: Steps of `VirtualTime.advance`.
STEPS_COUNT_MAX = 200

#: A loop counts as idle when this many iterations in a row have found nothing to do. Clients may keep it busy, so it
#: is not awaited for longer than the larger number of iterations, and several loops for this number of rounds.
_IDLE_ITERATIONS_COUNT = 5
_ITERATIONS_COUNT_MAX = 1_000
_ROUNDS_COUNT_MAX = 50


class Idle(NamedTuple):
    """A loop that has nothing to do until its next timer."""

    was_busy: bool  #: whether there was anything to do before
    next_timer_s: float | None


class VirtualTime:
    """The time of one or several event loops: real time, and what was added to it."""

    def __init__(self, step_s_max: float = inf) -> None:
        """:param step_s_max: Time moves by at most this at once, unless no timer is due for longer. Several brokers
        need it: a request and the timer that gives it up must not be due in the same step.
        """
        self.advanced_s = 0.0
        self._step_s_max = step_s_max

    def time(self) -> float:
        return monotonic() + self.advanced_s

    def advance(self, delta_s: float, loops: Mapping["VirtualTimeLoop", LoopThread]) -> None:
        """Let the timers of the next `delta_s` seconds fire in order, and wait for what they begin.

        Time moves in steps, so that not every timer of a long time takes one. `loops` are the running ones, with their
        threads; this method is called on another thread.
        """
        end_s, step_s = self.time() + delta_s, min(delta_s / STEPS_COUNT_MAX, self._step_s_max)
        due_s = _until_idle(loops)
        while due_s is not None and due_s <= end_s:
            self.advanced_s += max(min(max(due_s, self.time() + step_s), end_s) - self.time(), 0.0)
            due_s = _until_idle(loops)
        self.advanced_s += max(end_s - self.time(), 0.0)
        _until_idle(loops)


def _until_idle(loops: Mapping["VirtualTimeLoop", LoopThread]) -> float | None:
    """Wait until all loops are idle; return when their next timer is due."""
    for _ in range(_ROUNDS_COUNT_MAX):
        waiting = [thread.start(loop.until_idle()) for loop, thread in loops.items()]
        idle = [future.result() for future in waiting]
        if len(idle) == 1 or not any(each.was_busy for each in idle):
            break  # else one may have sent something to another one that was idle before
    return min((each.next_timer_s for each in idle if each.next_timer_s is not None), default=None)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs in the time of a `VirtualTime`.

    A broker of uvloop cannot be advanced, because uvloop keeps its timers in C.
    """

    def __init__(self, virtual_time: VirtualTime) -> None:
        self._virtual_time = virtual_time
        self._in_threads: set[asyncio.Future[Any]] = set()
        super().__init__()

    def time(self) -> float:
        return self._virtual_time.time()

    async def until_idle(self) -> Idle:
        """Wait until there is nothing to do before the next timer."""
        idle_count = iterations_count = 0
        was_busy = False
        while idle_count < _IDLE_ITERATIONS_COUNT:
            if self._in_threads:
                was_busy = True
                await asyncio.wait(self._in_threads)
            await asyncio.sleep(0)
            iterations_count += 1
            is_busy = bool(self._ready)  # type: ignore[attr-defined]
            was_busy |= is_busy
            is_served = not is_busy or iterations_count > _ITERATIONS_COUNT_MAX
            idle_count = idle_count + 1 if is_served and not self._in_threads else 0
        return Idle(was_busy, self._next_timer_s())

    def _next_timer_s(self) -> float | None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._in_threads.add(future)
        future.add_done_callback(self._in_threads.discard)
        return future


class VirtualClock:
    """The clock of a `VirtualTime`."""

    def __init__(self, virtual_time: VirtualTime) -> None:
        self._virtual_time = virtual_time
        self._system = SystemClock()

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, plus the time that was added."""
        return self._system.wall_ms() + int(self._virtual_time.advanced_s * 1_000)

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary point."""
        return self.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary point."""
        return self._system.monotonic_ns() + int(self._virtual_time.advanced_s * 1_000_000_000)
