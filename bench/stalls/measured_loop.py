"""An event loop that measures how long it is held, in CPU time of its thread: other processes do not count."""

import asyncio
import time
from typing import Any, NamedTuple


class Hold(NamedTuple):
    """A stretch in which the loop ran no other callback."""

    cpu_ms: float
    callback: str  #: the callback that took most of it


class MeasuredLoop(asyncio.SelectorEventLoop):
    """Measures each callback, and the callbacks of each iteration together."""

    def __init__(self) -> None:
        super().__init__()
        self._longest_ns = 0
        self._callback_ns = 0
        self._callback: Any = None

    def _run_once(self) -> None:
        """Run what is ready; waiting for sockets costs no CPU time."""
        started_ns = time.thread_time_ns()
        super()._run_once()  # type: ignore[misc]
        self._longest_ns = max(self._longest_ns, time.thread_time_ns() - started_ns)

    def measure_callbacks(self) -> None:
        """Record the longest callback as well. This applies to every loop of the process."""
        run = asyncio.Handle._run  # noqa: SLF001  # a callback is run nowhere else

        def measured(handle: asyncio.Handle) -> None:
            started_ns = time.thread_time_ns()
            run(handle)
            elapsed_ns = time.thread_time_ns() - started_ns
            if elapsed_ns > self._callback_ns and asyncio.get_running_loop() is self:
                self._callback_ns, self._callback = elapsed_ns, _name_of(handle)

        asyncio.Handle._run = measured  # type: ignore[method-assign]  # noqa: SLF001

    def take_longest(self) -> Hold:
        """Return the longest hold since the last call."""
        hold = Hold(self._longest_ns / 1e6, f"{self._callback_ns / 1e6:.1f} ms {self._callback}")
        self._longest_ns = self._callback_ns = 0
        self._callback = None
        return hold


def _name_of(handle: asyncio.Handle) -> str:
    callback = handle._callback  # type: ignore[attr-defined]  # noqa: SLF001
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine = owner.get_coro()
        return f"{getattr(coroutine, '__qualname__', coroutine)}"
    return str(getattr(callback, "__qualname__", type(callback)))
