"""The parts that are closed when a broker stops."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack


class Shutdown:
    """Callbacks that `run` calls, the latest first."""

    def __init__(self) -> None:
        self._callbacks = AsyncExitStack()
        #: Stop as a killed process does: write nothing more, and do not mark the logs as cleanly closed.
        self.is_abrupt = False

    def add(self, close: Callable[[], object]) -> None:
        self._callbacks.callback(close)

    def add_async(self, close: Callable[[], Awaitable[object]]) -> None:
        self._callbacks.push_async_callback(close)

    async def run(self) -> None:
        """Call and remove all callbacks; a second call does nothing."""
        await self._callbacks.aclose()
