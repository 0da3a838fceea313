"""A thread for user code, which may be slow or never return."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

#: After this time the code of an abandoned thread is interrupted if it still runs. Sooner it may hold a lock, such as
#: that of the log, which would never be released.
INTERRUPTED_AFTER_S = 60.0

#: Abandoned threads that still run: with this many, no new one is started.
GIVEN_UP_COUNT_MAX = 8


class OutOfTime(Exception):
    """A call exceeded its limit, or could not start because too many threads are abandoned."""


class _GivenUp(BaseException):
    """Raised in an abandoned thread, to end a loop in Python code."""


class _Thread:
    """Makes one call after the other. A daemon thread, so a call that never returns does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[
            tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]] | None
        ] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, function: Callable[[], ResultT]) -> "asyncio.Future[ResultT]":
        """Call `function`, which must not raise, in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultT] = loop.create_future()
        self._calls.put((loop, future, function))
        return future

    def end(self) -> None:
        """End after the current call."""
        self._ended = True
        self._calls.put(None)

    def give_up(self) -> None:
        """Let the thread end after its call; if that does not end, interrupt it."""
        self.end()
        # Not a timer of the event loop, which may end sooner: that of an embedded broker does.
        timer = threading.Timer(INTERRUPTED_AFTER_S, self._interrupt)
        timer.daemon = True
        timer.start()

    def _interrupt(self) -> None:
        """Stop the thread in the middle of a call: Python code immediately, a wait in C when it is over."""
        import ctypes  # takes 2 ms, which few brokers need

        if self._thread.is_alive():
            identifier = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(_GivenUp))

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
    """Calls functions in threads, each call with a limit, beside the event loop.

    Threads start when they are needed. Not for several event loops.
    """

    def __init__(self, name: str, threads_count: int = 1, turn_limit_ms: int | None = None) -> None:
        """:param threads_count: Number of calls at a time; others wait for their turn.
        :param turn_limit_ms: How long they wait at most; None without limit.
        """
        self._name = name
        self._threads_count = threads_count
        self._turn_limit_s = None if turn_limit_ms is None else turn_limit_ms / 1000
        self._calls: set[asyncio.Task[Any]] = set()
        self._idle: list[_Thread] = []
        self._given_up: list[_Thread] = []
        self._turns = asyncio.Semaphore(threads_count)
        self._is_closed = False

    async def call(self, function: Callable[[], ResultT], limit_ms: int) -> ResultT:
        """Return the result of `function`, which must not raise. The limit counts from its turn.

        If the caller is cancelled, a call that has begun goes on: clients that disconnect must not use up the threads.

        :raises OutOfTime: When it takes longer; its thread is abandoned and the result is lost.
        """
        await self._take_turn()
        call = asyncio.get_running_loop().create_task(self._call(function, limit_ms))
        self._calls.add(call)
        call.add_done_callback(self._end)
        return await asyncio.shield(call)

    async def _take_turn(self) -> None:
        """Wait for a thread.

        :raises OutOfTime: If none is free in time.
        """
        if not self._turns.locked():
            await self._turns.acquire()
            return
        # A task of its own: requests are handled without one until they wait.
        waiting = asyncio.get_running_loop().create_task(self._wait_for_turn())
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._turns.release()
            raise

    async def _wait_for_turn(self) -> None:
        try:
            async with asyncio.timeout(self._turn_limit_s):
                await self._turns.acquire()
        except TimeoutError:
            message = f"{self._threads_count} other calls were running for {self._turn_limit_s:g} s"
            raise OutOfTime(message) from None

    async def _call(self, function: Callable[[], ResultT], limit_ms: int) -> ResultT:
        thread = self._ready()
        future = thread.submit(function)
        timer = asyncio.get_running_loop().call_later(limit_ms / 1000, _end_waiting, future, limit_ms)
        try:
            result = await future
        except (OutOfTime, asyncio.CancelledError):
            self._given_up.append(thread)
            thread.give_up()
            raise
        finally:
            timer.cancel()
        self._release(thread)
        return result

    def _end(self, call: "asyncio.Task[Any]") -> None:
        self._calls.discard(call)
        self._turns.release()
        if not call.cancelled():
            call.exception()  # the caller may be gone

    async def when_idle(self) -> None:
        """Wait until the calls that run now have ended."""
        if self._calls:
            await asyncio.wait(self._calls)

    def _ready(self) -> _Thread:
        if self._idle:
            return self._idle.pop()
        self._given_up = [thread for thread in self._given_up if thread.is_alive]
        if len(self._given_up) >= GIVEN_UP_COUNT_MAX:
            message = f"{len(self._given_up)} earlier calls have not returned yet"
            raise OutOfTime(message)
        return _Thread(self._name)

    def _release(self, thread: _Thread) -> None:
        if self._is_closed:
            thread.end()
        else:
            self._idle.append(thread)

    def close(self) -> None:
        """End the threads, after their current calls."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().end()

    def statistics(self) -> dict[str, int]:
        return {"given_up_count": sum(thread.is_alive for thread in self._given_up)}
