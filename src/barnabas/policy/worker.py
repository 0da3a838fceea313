"""A thread for calls into code that is not ours, which may be slow or never come back."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

#: Threads given up that still run: from so many on, no new one is begun.
GIVEN_UP_COUNT_MAX = 8


class OutOfTime(Exception):
    """A call has not come back within its limit, or could not be begun because too many have not."""


class _GivenUp(BaseException):
    """Thrown into a thread that has been given up, to end a loop in Python code."""


class _Thread:
    """Makes one call after the other. A daemon: a call that never returns does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[
            tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]] | None
        ] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def submit(self, function: Callable[[], ResultT]) -> "asyncio.Future[ResultT]":
        """Call `function`, which must not raise, in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultT] = loop.create_future()
        self._calls.put((loop, future, function))
        return future

    def end(self) -> None:
        """Let it end after the call that it makes."""
        self._ended = True
        self._calls.put(None)

    def give_up(self) -> None:
        """End it, if need be in the middle of a call. Python code notices; a wait in C does when it is over."""
        import ctypes  # 2 ms that few brokers need

        identifier = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(_GivenUp))
        self.end()  # only now: a thread that has ended leaves its number to another

    def _run(self) -> None:
        try:
            while (call := self._calls.get()) is not None and not self._ended:
                loop, future, function = call
                result = function()
                if not self._ended:
                    loop.call_soon_threadsafe(_set_result, future, result)
        except _GivenUp:
            pass


def _set_result(future: "asyncio.Future[ResultT]", result: ResultT) -> None:
    if not future.done():
        future.set_result(result)


def _end_waiting(future: "asyncio.Future[Any]", limit_ms: int) -> None:
    if not future.done():
        future.set_exception(OutOfTime(f"no answer within {limit_ms} ms"))


class PolicyWorker:
    """Calls functions in a thread, one at a time and each within a limit, while the event loop goes on.

    The thread begins with the first call. Not for several event loops.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: _Thread | None = None
        self._given_up: list[_Thread] = []
        self._turn = asyncio.Lock()

    async def call(self, function: Callable[[], ResultT], limit_ms: int) -> ResultT:
        """What `function`, which must not raise, gives. The limit counts from when it is its turn.

        :raises OutOfTime: When it takes longer; its thread is given up, and what it gives is lost.
        """
        async with self._turn:
            thread = self._ready()
            future = thread.submit(function)
            timer = asyncio.get_running_loop().call_later(limit_ms / 1000, _end_waiting, future, limit_ms)
            try:
                return await future
            except (OutOfTime, asyncio.CancelledError):
                self._thread = None
                self._given_up.append(thread)
                thread.give_up()
                raise
            finally:
                timer.cancel()

    def _ready(self) -> _Thread:
        if self._thread is None:
            self._given_up = [thread for thread in self._given_up if thread.is_alive]
            if len(self._given_up) >= GIVEN_UP_COUNT_MAX:
                message = f"{len(self._given_up)} earlier calls have not come back yet"
                raise OutOfTime(message)
            self._thread = _Thread(self._name)
        return self._thread

    def close(self) -> None:
        """End the thread after the call that it makes."""
        if self._thread is not None:
            self._thread.end()
            self._thread = None

    def statistics(self) -> dict[str, int]:
        """How many threads were given up and still run."""
        return {"given_up_count": sum(thread.is_alive for thread in self._given_up)}
