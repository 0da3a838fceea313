"""The timers of shards, on the event loop."""

import asyncio
from collections.abc import Callable

from barnabas.coordinator.step import Timer, TimerKey


class Timers:
    """Calls back with the key of each timer that is due; setting a timer again moves it."""

    def __init__(self, due: Callable[[TimerKey], None]) -> None:
        self._due = due
        self._handles: dict[TimerKey, asyncio.TimerHandle] = {}

    def take(self, timer: Timer) -> None:
        """Set, move or cancel a timer."""
        handle = self._handles.pop(timer.key, None)
        if handle is not None:
            handle.cancel()
        if timer.delay_ms is not None:
            loop = asyncio.get_running_loop()
            self._handles[timer.key] = loop.call_later(max(timer.delay_ms, 0) / 1000, self._expire, timer.key)

    def _expire(self, key: TimerKey) -> None:
        del self._handles[key]
        self._due(key)

    def cancel_all(self) -> None:
        """Forget them all."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def __len__(self) -> int:
        return len(self._handles)
