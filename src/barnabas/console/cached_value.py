"""Cache for an expensive value: serves the stale value and refreshes it in the background."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from barnabas.base.clock import Clock

ValueT = TypeVar("ValueT")


class Snapshot(Generic[ValueT]):
    """The last result of `load`.

    Up to `fresh_ms` old it is returned as it is; up to `stale_ms`, it is returned while a new one is loaded; if older,
    the caller waits for the new one.
    """

    def __init__(
        self, load: Callable[[], Awaitable[ValueT]], clock: Clock, *, fresh_ms: int, stale_ms: int
    ) -> None:
        self._load = load
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._stale_ms = stale_ms
        self._value: ValueT | None = None
        self._loaded_ms = 0
        self._loading: asyncio.Task[ValueT] | None = None

    async def get(self) -> ValueT:
        """The value.

        :raises Exception: An error of `load`, if the caller must wait for it.
        :raises ConnectionError: When the cache is closed meanwhile.
        """
        age_ms = self._clock.monotonic_ms() - self._loaded_ms
        if self._value is None or age_ms > self._stale_ms:
            return await _outcome(self._reload())
        if age_ms > self._fresh_ms:
            self._reload()
        return self._value

    def clear(self) -> None:
        """Drop the value, so that the next `get` loads a new one."""
        self._value = None
        self._loading = None  # not cancelled: other callers wait for it

    def close(self) -> None:
        """Stop loading; waiting callers get an error."""
        if self._loading is not None:
            self._loading.cancel()
        self.clear()

    def _reload(self) -> asyncio.Task[ValueT]:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._take())
            self._loading.add_done_callback(_retrieve)
        return self._loading

    async def _take(self) -> ValueT:
        began_ms = self._clock.monotonic_ms()
        value = await self._load()
        if self._loading is asyncio.current_task():  # else it began before the value was cleared
            self._value, self._loaded_ms = value, began_ms
        return value


async def _outcome(loading: asyncio.Task[ValueT]) -> ValueT:
    try:
        return await asyncio.shield(loading)
    except asyncio.CancelledError:
        waiting = asyncio.current_task()
        if loading.cancelled() and waiting is not None and not waiting.cancelling():
            message = "the session has ended"
            raise ConnectionError(message) from None
        raise


def _retrieve(task: asyncio.Task[ValueT]) -> None:
    """Retrieve a failure, which the next caller sees again."""
    if not task.cancelled():
        task.exception()
