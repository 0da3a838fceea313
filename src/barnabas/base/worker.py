"""Threads for long work that touches no state: large requests, costly batches, immutable images."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")


class Worker:
    """Calls functions in threads beside the event loop.

    One thread is best for Python code: threads share the interpreter, so each more makes the event loop wait longer
    for it. Calls that release the interpreter, such as decompression, run in parallel.
    """

    def __init__(self, thread_name: str, threads_count: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads_count, thread_name_prefix=thread_name)

    async def call(
        self,
        function: Callable[Parameters, ResultT],
        *arguments: Parameters.args,
        **keywords: Parameters.kwargs,
    ) -> ResultT:
        """Call `function` in one of the threads. Nothing that it reads may change meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*arguments, **keywords))

    def free(self, *objects: object) -> None:
        """Free large messages in a thread; the caller must drop its own references before it returns to the loop."""
        held = list(objects)
        asyncio.get_running_loop().call_soon(self._submit, held.clear)

    def _submit(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the worker is closed
            self._threads.submit(function)

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._threads.shutdown(cancel_futures=True)
