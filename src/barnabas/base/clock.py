"""The broker's only source of time."""

import time
from typing import Protocol


class Clock(Protocol):
    """A wall clock for output and files, and a monotonic clock for measuring."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch; the value may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary point; the value never decreases."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary point; the value never decreases."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch; the value may jump."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary point; the value never decreases."""
        return time.monotonic_ns() // 1_000_000

    #: Nanoseconds since an arbitrary point; the value never decreases.
    monotonic_ns = staticmethod(time.monotonic_ns)


class ManualClock:
    """A clock for tests and the simulator, which only `advance` moves."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, as set."""
        return self.now_ms

    def monotonic_ms(self) -> int:
        """Return the same value as `wall_ms`."""
        return self.now_ms

    def monotonic_ns(self) -> int:
        """Return the same value in nanoseconds."""
        return self.now_ms * 1_000_000

    def advance(self, delta_ms: int) -> None:
        assert delta_ms >= 0, delta_ms
        self.now_ms += delta_ms
