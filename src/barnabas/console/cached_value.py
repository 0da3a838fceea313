"""Cache for an expensive value: serves the stale value and refreshes it in the background."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from barnabas.base.clock import Clock

ValueT = TypeVar("ValueT")


class Snapshot(Generic[ValueT]):
    """What `load` gave last.

    Up to `fresh_ms` old it is shown as it is; up to `stale_ms`, too, while it is loaded anew; older, it is waited for.
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

        :raises Exception: What `load` raises, when it must be waited for.
        :raises ConnectionError: When this is closed meanwhile.
        """
        age_ms = self._clock.monotonic_ms() - self._loaded_ms
        if self._value is None or age_ms > self._stale_ms:
            return await _outcome(self._reload())
        if age_ms > self._fresh_ms:
            self._reload()
        return self._value

    def clear(self) -> None:
        """Have the next `get` wait for a new value: what was loaded is known to be wrong."""
        self._value = None
        self._loading = None  # not cancelled: others wait for it

    def close(self) -> None:
        """Ask no more; whoever waits is told so."""
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
        if self._loading is asyncio.current_task():  # else it began before somebody knew better
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
    """Look at a failure, which whoever waits next will meet again."""
    if not task.cancelled():
        task.exception()
