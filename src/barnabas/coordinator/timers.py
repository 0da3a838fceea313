"""The timers of shards, on the event loop."""

import asyncio
from collections.abc import Callable

from barnabas.coordinator.result import Timer, TimerKey

#: The loop's clock may have this resolution: timers within it are due.
_TICK_S = 0.001


class _Armed:
    """A timer with its due time, and the time at which the loop checks it, which may be earlier."""

    __slots__ = ("check_s", "due_s", "handle")

    def __init__(self, due_s: float) -> None:
        self.due_s = self.check_s = due_s
        self.handle: asyncio.TimerHandle


class Timers:
    """Calls back with the key of each timer that is due; setting a timer again moves it.

    Each heartbeat moves its member's session timer to a later time. That only stores the time: the loop checks the
    timer at its earlier time, and then again.
    """

    def __init__(self, due: Callable[[TimerKey], None]) -> None:
        self._due = due
        self._armed: dict[TimerKey, _Armed] = {}

    def apply(self, timer: Timer) -> None:
        """Set, move or cancel a timer."""
        key, delay_ms = timer
        armed = self._armed.get(key)
        if delay_ms is None:
            if armed is not None:
                self._armed.pop(key).handle.cancel()
            return
        loop = asyncio.get_running_loop()
        due_s = loop.time() + max(delay_ms, 0) / 1000
        if armed is not None:
            if due_s >= armed.check_s:
                armed.due_s = due_s
                return
            armed.handle.cancel()
        self._armed[key] = armed = _Armed(due_s)
        armed.handle = loop.call_at(due_s, self._check, key)

    def _check(self, key: TimerKey) -> None:
        armed = self._armed[key]
        loop = asyncio.get_running_loop()
        if armed.due_s - loop.time() >= _TICK_S:
            armed.check_s = armed.due_s
            armed.handle = loop.call_at(armed.due_s, self._check, key)
            return
        del self._armed[key]
        self._due(key)

    def due_s(self) -> dict[TimerKey, float]:
        """Return when each timer is due, on the loop's clock, in the order in which they were first set."""
        return {key: armed.due_s for key, armed in self._armed.items()}

    def cancel_all(self) -> None:
        for armed in self._armed.values():
            armed.handle.cancel()
        self._armed.clear()

    def __len__(self) -> int:
        return len(self._armed)
